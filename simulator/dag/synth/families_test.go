package synth

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"clustergym/simulator/dag"
	"clustergym/simulator/dag/dagjson"
)

func digest(t *testing.T, q *dag.Problem) string {
	t.Helper()
	var b bytes.Buffer
	if err := dagjson.Write(&b, q.Graph, q.Platform); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(b.Bytes()))[:16]
}

// Recorded studies name their problems by family, size and number: these digests are of the problems that they planned.
func TestFamiliesDrawTheProblemsOfTheRecordedStudies(t *testing.T) {
	want := map[string]string{
		"alibaba true": "279a0b52a427423a", "alibaba false": "f9ef06ff6f3fb51d",
		"degree-1 true": "467ee34f7f1702d0", "degree-1 false": "79abf54c228216ac",
		"degree-3 true": "83b4dff0fea787f2", "degree-3 false": "2e877c6886a742e9",
		"degree-100 true": "53278b03d355d80f", "degree-100 false": "e7ceb32fd4384dd7",
		"training true": "716ce0169fc92d6e", "training false": "46b71386607e4a64",
	}
	if 2*len(Families()) != len(want) {
		t.Fatalf("families %v, want %d", Families(), len(want)/2)
	}
	for _, family := range Families() {
		for _, transfers := range []bool{true, false} {
			q, err := FamilyProblem(family, 40, 6, 2, transfers)
			if err != nil {
				t.Fatal(err)
			}
			key := fmt.Sprint(family, " ", transfers)
			if got := digest(t, q); got != want[key] {
				t.Errorf("%s: %s, want %s", key, got, want[key])
			}
			if carries := q.Graph.Bytes() > 0; carries != transfers {
				t.Errorf("%s: edges carry bytes: %v", key, carries)
			}
		}
	}
}

func TestAFamilyThatIsUnknownOrTooLargeIsRefused(t *testing.T) {
	for want, err := range map[string]error{
		`family: got "degree-2", want one of alibaba, degree-1,`: second(FamilyProblem("degree-2", 10, 2, 0, true)),
		"tasks: got 0": second(FamilyProblem("degree-1", 0, 2, 0, true)),
		"gpus: got -1": second(FamilyProblem("degree-1", 10, -1, 0, true)),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func second(_ *dag.Problem, err error) error { return err }
