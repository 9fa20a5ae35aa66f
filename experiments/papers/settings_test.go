package papers

import (
	"fmt"
	"strings"
	"testing"

	"clustergym/configs"
	"clustergym/experiments/study"
	"clustergym/internal/fault"
	"clustergym/internal/raced"
)

// Whatever settings Validate accepts, the study makes cells, tables and figures of them.
func TestValidSettingsMakeAStudy(t *testing.T) {
	if raced.On {
		t.Skip("one goroutine, in which no race can be, and half a minute even without the race detector; make unit runs it")
	}
	for _, s := range All() {
		t.Run(s.Name, func(t *testing.T) {
			plain, err := study.ShowSettings(s, study.Plan{Quick: true})
			if err != nil {
				t.Fatal(err)
			}
			made := 0
			for _, key := range configs.AllKeys(plain.Settings) {
				if strings.HasPrefix(key, "agent.") { // a configuration of its own
					continue
				}
				for _, value := range []string{"[]", "0", "3"} {
					p := study.Plan{Quick: true, Changes: study.Changes{Set: []string{fmt.Sprintf("%s=%s", key, value)}}}
					shown, err := study.ShowSettings(s, p)
					if err != nil || len(shown.Changed) == 0 {
						continue
					}
					made++
					if cells, err := s.Cells(p); err != nil && len(fault.All(err)) == 0 || err == nil && len(cells) == 0 {
						t.Errorf("--set %s=%s: %d cells, %v", key, value, len(cells), err)
					}
					res := new(study.Results)
					s.Tables(p)
					for _, f := range s.Figures(p) {
						f.SVG(res)
					}
					if s.Notes != nil {
						s.Notes(p)
					}
					if s.Claims != nil {
						s.Claims(p)
					}
				}
			}
			if made == 0 {
				t.Error("no setting can be changed")
			}
		})
	}
}
