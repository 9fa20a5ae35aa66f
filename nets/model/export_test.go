package model

// RowsOfPiece is the number of rows of a piece in the last call, for tests.
func RowsOfPiece(b any) int {
	switch b := b.(type) {
	case *ACBatches:
		return b.p.rows
	case *QBatches:
		return b.p.rows
	}
	panic("no batches")
}
