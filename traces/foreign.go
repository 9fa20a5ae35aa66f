package traces

import "bytes"

// foreignHead is how many first bytes of a file tell its kind; tar has its mark the latest.
const foreignHead = 512

// foreignKinds are kinds of files that people name in place of a trace and that no reader here can take, by the bytes
// at one place of them.
var foreignKinds = []struct {
	at          int
	magic, says string
}{
	{0, "\xfd7zXZ\x00", "this is an xz file; unpack it: xz -dc FILE > NEW"},
	{0, "7z\xbc\xaf\x27\x1c", "this is a 7-Zip archive; unpack it first"},
	{0, "Rar!\x1a\x07", "this is a RAR archive; unpack it first"},
	{0, "\x04\x22\x4d\x18", "this is an lz4 file; unpack it: lz4 -dc FILE > NEW"},
	{0, "LZIP", "this is an lzip file; unpack it: lzip -dc FILE > NEW"},
	{0, "\x5d\x00\x00", "this is an lzma file; unpack it: xz --format=lzma -dc FILE > NEW"},
	{0, "\x1f\x9d", "this is a file packed by compress; unpack it: gzip -dc FILE > NEW"},
	{0, "\x89LZO\x00", "this is an lzop file; unpack it first"},
	{0, "\xff\x06\x00\x00sNaPpY", "this is a snappy file; unpack it first"},
	{257, "ustar", "this is a tar archive; unpack it (tar -xf FILE) and name one of its files"},
	{0, "PAR1", "this is a Parquet file; write it as CSV, as pandas.read_parquet(FILE).to_csv(NEW, index=False) does"},
	{0, "PARE", "this is an encrypted Parquet file; write its table as CSV"},
	{0, "ORC", "this is an ORC file; write it as CSV, as pandas.read_orc(FILE).to_csv(NEW, index=False) does"},
	{0, "ARROW1\x00",
		"this is an Arrow or Feather file; write it as CSV, as pandas.read_feather(FILE).to_csv(NEW, index=False) does"},
	{0, "FEA1", "this is a Feather file; write it as CSV, as pandas.read_feather(FILE).to_csv(NEW, index=False) does"},
	{0, "\xff\xff\xff\xff", "this is a stream of Arrow records, or no text at all; write its table as CSV"},
	{0, "Obj\x01", "this is an Avro file; write it as CSV"},
	{0, "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
		"this is a document of an older Excel or Office; save its sheet as CSV in UTF-8"},
	{0, "SQLite format 3\x00",
		"this is an SQLite database; write its table as CSV, as sqlite3 -header -csv FILE 'select …' does"},
	{0, "\x89HDF\r\n\x1a\n",
		"this is an HDF5 file; write its table as CSV, as pandas.read_hdf(FILE).to_csv(NEW, index=False) does"},
	{0, "CDF\x01", "this is a NetCDF file; write its table as CSV"},
	{0, "CDF\x02", "this is a NetCDF file; write its table as CSV"},
	{0, "\x93NUMPY", "this is a NumPy array; write its table as CSV"},
	{0, "\x80\x02", pickled},
	{0, "\x80\x03", pickled},
	{0, "\x80\x04", pickled},
	{0, "\x80\x05", pickled},
	{0, "RDX2\n", rData},
	{0, "RDX3\n", rData},
	{0, "X\n\x00\x00\x00\x02", rData},
	{0, "X\n\x00\x00\x00\x03", rData},
	{0, "MATLAB 5.0 MAT-file", "this is a MATLAB file; write its table as CSV"},
	{0, "%PDF-", "this is a PDF"},
	{0, "%!PS", "this is a PostScript file"},
	{0, "{\\rtf", "this is a document in Rich Text Format; save it as plain text in UTF-8"},
	{0, "\x89PNG\r\n", "this is an image"},
	{0, "\xff\xd8\xff", "this is an image"},
	{0, "GIF8", "this is an image"},
	{0, "\x7fELF", "this is a program"},
	{0, "\x00asm", "this is a program"},
	{0, "version https://git-lfs.github.com/spec/",
		"this is the pointer of Git LFS to a file that is not here; git lfs pull fetches it"},
	{0, "../.git/annex/objects/", annexed},
	{0, ".git/annex/objects/", annexed},
	{0, "/annex/objects/", annexed},
	{0, "404: Not Found", "this is the answer of a web server that the file is not there; fetch the file again"},
}

const (
	pickled = "this is a pickle of Python; write its table as CSV, as pandas.read_pickle(FILE).to_csv(NEW, index=False) " +
		"does (a pickle can run code: open only your own)"
	rData   = "this is a file of R's data; write its table as CSV, as write.csv(x, NEW, row.names = FALSE) does"
	annexed = "this is the pointer of git-annex to a file that is not here; git annex get fetches it"
)

// words are marks of kinds that the header of a table could have too.
var words = map[string]bool{"ustar": true, "PAR1": true, "PARE": true, "ORC": true, "FEA1": true, "LZIP": true,
	"GIF8": true}

// binary reports whether a character is one that no text has.
func binary(r rune) bool { return r < ' ' && r != '\t' && r != '\n' && r != '\r' }

// foreign says what kind of file begins with head if it is one that no reader here can take, else "".
func foreign(head []byte) string {
	for _, k := range foreignKinds {
		if len(head) > k.at && bytes.HasPrefix(head[k.at:], []byte(k.magic)) &&
			(!words[k.magic] || bytes.ContainsFunc(head, binary)) {
			return k.says
		}
	}
	text := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
	if len(text) < 2 || text[0] != '<' {
		return ""
	}
	switch c := text[1]; {
	case bytes.Contains(bytes.ToLower(text), []byte("html")):
		return "this is a web page, perhaps of an error or a login; fetch the file itself"
	case c == '?' || c == '!' || c|0x20 >= 'a' && c|0x20 <= 'z':
		return "this is XML"
	}
	return ""
}
