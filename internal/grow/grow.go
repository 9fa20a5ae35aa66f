// Package grow finds elements of lists that are as long as the greatest index so far.
package grow

import "golang.org/x/exp/constraints"

// At returns element i of list. Where the list ends before it, zero elements are appended. The pointer is valid until
// the list grows again.
func At[T any, I constraints.Integer](list *[]T, i I) *T {
	var zero T
	return Or(list, i, zero)
}

// Or is At with elements that are empty in place of zero.
func Or[T any, I constraints.Integer](list *[]T, i I, empty T) *T {
	for int(i) >= len(*list) {
		*list = append(*list, empty)
	}
	return &(*list)[i]
}
