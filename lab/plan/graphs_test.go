package plan

import (
	"context"
	"io"
	"strings"
	"testing"

	"clustergym/lab/workload"
)

const batch = "task_name,instance_num,job_name,task_type,status,start_time,end_time,plan_cpu,plan_mem\n" +
	"M1,1,j_1,1,Terminated,100,104,100,0.5\nR2_1,2,j_1,1,Terminated,104,106,100,0.5\n"

func TestAFormatIsRecognisedByTheBeginningOfTheFile(t *testing.T) {
	for text, want := range map[string]string{
		diamond: formatDAG, bare: formatDAG, workflow: formatWorkflow, batch: formatAlibaba,
		"\xef\xbb\xbf" + workflow: formatWorkflow, "\n " + batch: formatAlibaba, "": formatDAG, "a,b\n1,2\n": formatDAG,
	} {
		if got := sniffGraph([]byte(text)); got != want {
			t.Errorf("%.40q counts as %s, want %s", text, got, want)
		}
	}
}

func TestEveryFormatIsReadAndSaysWhereAGraphIs(t *testing.T) {
	for _, c := range []struct {
		name, text, format, at string
		tasks                  int
	}{
		{"g.json", diamond, formatDAG, "g.json, line 1 (diamond)", 4},
		{"w.json", workflow, formatWorkflow, "w.json (w)", 4},
		{"t.csv", batch, formatAlibaba, "t.csv (job j_1)", 2},
	} {
		path := write(t, c.name, c.text)
		for _, format := range []string{c.format, workload.FormatAuto} {
			s, err := openGraphs(context.Background(), path, format)
			if err != nil {
				t.Fatal(err)
			}
			g, _, at, err := s.next()
			if err != nil || g.Len() != c.tasks || !strings.HasSuffix(at, c.at) {
				t.Errorf("%s as %s: at %s, %v", c.name, format, at, err)
			}
			if _, _, _, err := s.next(); err != io.EOF {
				t.Errorf("%s as %s: after the last graph %v", c.name, format, err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
