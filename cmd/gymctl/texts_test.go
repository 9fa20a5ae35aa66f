package main

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"unicode"

	"clustergym/cmd/gymctl/internal/clitest"
	"clustergym/cmd/gymctl/internal/research"
)

// foreign are texts that a terminal would obey or that make a line look like another one.
var foreign = []string{
	"esc\x1b[2J", "osc\x1b]0;title\x07", "csi\u009b31m", "two\nlines", "over\rwritten", "\u202egnp.exe", "iso\u2066late",
	"zero\u200bwidth", "del\x7f", "bell\a", "back\b\b\b",
}

// shown reports the first character of a text for people that does more than being seen.
func shown(text string) (r rune, ok bool) {
	for _, r := range text {
		if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
			return r, false
		}
	}
	return 0, true
}

// Whatever stands in the columns of a trace, tables and messages show it and obey nothing.
func TestTextsOfOthersAreShownAndNotObeyed(t *testing.T) {
	t.Chdir(t.TempDir())
	header := []string{"submit_time", "duration", "num_gpu", "job_id", "user", "vc", "gpu_type", "model", "status"}
	for at := 3; at < len(header)+3; at++ {
		var b strings.Builder
		w := csv.NewWriter(&b)
		head := append([]string{}, header...)
		if at >= len(header) {
			head[0] = header[0] // not a number
		}
		_ = w.Write(head)
		for i, text := range foreign {
			row := []string{"0", "60", "1", "j" + string(rune('a'+i)), "u", "v", "", "m", "completed"}
			row[at%len(header)] = text
			_ = w.Write(row)
		}
		w.Flush()
		clitest.Write(t, "odd.csv", b.String())
		for _, args := range [][]string{
			{"trace", "stats", "odd.csv"}, {"trace", "convert", "odd.csv", "-o", "out.csv"},
			{"sim", "--trace", "odd.csv", "--cluster", "2x8", "--policy", "fifo,sjf"},
			{"predict", "eval", "--trace", "odd.csv"},
		} {
			_, out, said := clitest.Run(t, args...)
			if r, ok := shown(out + said); !ok {
				t.Errorf("column %d, gymctl %s: %q in %q", at, strings.Join(args, " "), r, out+said)
			}
		}
	}
}

// So are names on the command line, names of files and what is wrong with their contents.
func TestMessagesAreClean(t *testing.T) {
	t.Chdir(t.TempDir())
	for i, text := range foreign {
		if strings.Contains(text, "\n") {
			continue // as a file's name it is two lines, which are shown as two
		}
		name := "n" + string(rune('a'+i))
		clitest.Write(t, name+".yaml", text+": 5\nnodes: ["+text+"]\n")
		clitest.Write(t, name+".csv", "submit_time,duration,"+text+"\n1,2,3\n")
		clitest.Write(t, name+".json", `{"`+text+`": 1}`)
		for _, args := range [][]string{
			{text}, {"sim", "--" + text}, {"sim", "--cluster", text}, {"sim", "--policy", text}, {"trace", "stats", text},
			{"trace", "stats", name + ".csv"}, {"config", "show", name + ".yaml"},
			{"sim", "--cluster", "./" + name + ".yaml"}, {"eval", "--checkpoint", text}, {"train", "-c", text}, {"envs", text},
			{"twin", "check", name + ".json"}, {"steer", "report", name + ".json"},
			{"benchmark", "verify", name + ".json"}, {"ckpt", "show", text}, {"eval", "--policy-onnx", text},
			{"sim", "--set", text},
		} {
			_, out, said := clitest.Run(t, args...)
			if r, ok := shown(out + said); !ok {
				t.Errorf("gymctl %q: %q in %q", args, r, out+said)
			}
		}
	}
}

// What programs read has the exact names.
func TestDocumentsKeepTheExactNames(t *testing.T) {
	t.Chdir(t.TempDir())
	var b strings.Builder
	w := csv.NewWriter(&b)
	_ = w.Write([]string{"submit_time", "duration", "num_gpu", "vc"})
	_ = w.Write([]string{"0", "60", "1", "esc\x1b[2J"})
	w.Flush()
	if err := os.WriteFile("odd.csv", []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	var d struct {
		VCs []struct{ Name string } `json:"vcs"`
	}
	if err := json.Unmarshal([]byte(clitest.Must(t, "trace", "stats", "odd.csv", "--json")), &d); err != nil ||
		len(d.VCs) != 1 || d.VCs[0].Name != "esc\x1b[2J" {
		t.Errorf("%v, %+v", err, d)
	}
	clitest.Must(t, "trace", "convert", "odd.csv", "-o", "out.csv")
	if !strings.Contains(clitest.Read(t, "out.csv"), "esc\x1b[2J") {
		t.Errorf("the converted trace is %q", clitest.Read(t, "out.csv"))
	}
}

// A list of sentences is no wider in a pipe than people read.
func TestAListFitsAPipe(t *testing.T) {
	for _, args := range [][]string{{"experiment", "list"}} {
		out := clitest.Must(t, args...)
		for line := range strings.Lines(out) {
			if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > research.ListWidth {
				t.Errorf("gymctl %s: a line of %d characters: %s", strings.Join(args, " "), n, line)
			}
		}
		if strings.Contains(out, "Left out") {
			t.Errorf("gymctl %s leaves columns out:\n%s", strings.Join(args, " "), out)
		}
	}
}
