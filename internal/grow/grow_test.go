package grow_test

import (
	"slices"
	"testing"

	"clustergym/internal/grow"
)

func TestAtMakesTheListLongEnough(t *testing.T) {
	type job int32
	var list []string
	*grow.At(&list, job(2)) = "c"
	*grow.At(&list, job(0)) = "a"
	*grow.Or(&list, 4, "-") += "e"
	if want := []string{"a", "", "c", "-", "-e"}; !slices.Equal(list, want) {
		t.Errorf("got %q, want %q", list, want)
	}
}

func TestAtAllocatesNothingInALongList(t *testing.T) {
	list := make([][8]int, 10)
	if n := testing.AllocsPerRun(10, func() { grow.At(&list, 7)[3]++ }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
