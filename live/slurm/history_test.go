package slurm

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"clustergym/live"
)

// books answers sacct by period.
type books struct {
	answers map[string]string // by -S
	asked   []string
	fails   error
}

func (b *books) Run(_ context.Context, c Call) error {
	from, to := "", ""
	for i, a := range c.Args {
		switch a {
		case "-S":
			from = c.Args[i+1]
		case "-E":
			to = c.Args[i+1]
		}
	}
	b.asked = append(b.asked, from+" "+to)
	if b.fails != nil {
		return b.fails
	}
	return c.Out(strings.NewReader(strings.ReplaceAll(b.answers[from], "¦", apart)))
}

func day(s string) time.Time {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		panic(err)
	}
	return t
}

const (
	// end of January 2024: 1706745600
	short = "1¦ann¦lab¦gpu¦c¦1706000000¦1706000010¦1706000020¦10¦60¦COMPLETED¦1¦1¦1G¦gres/gpu=1¦gres/gpu=1¦g1¦1706000000¦a|b\n"
	over  = "2¦ann¦lab¦gpu¦c¦1706700000¦1706700010¦1706800000¦99990¦60¦COMPLETED¦1¦1¦1G¦gres/gpu=1¦gres/gpu=1¦g1¦1706000000¦over\n"
	runs  = "3¦bob¦lab¦gpu¦c¦1706700000¦1706700010¦Unknown¦99990¦60¦RUNNING¦1¦1¦1G¦gres/gpu=1¦gres/gpu=1¦g1¦1706000000¦runs\n"
	late  = "4¦bob¦lab¦gpu¦c¦1707000000¦1707000010¦1707000020¦10¦60¦COMPLETED¦1¦1¦1G¦gres/gpu=1¦gres/gpu=1¦g1¦1706000000¦two\nlines\n"
)

// A month is asked for at a time, and a job that runs over its end comes once.
func TestHistoryAsksByMonth(t *testing.T) {
	b := &books{answers: map[string]string{"2024-01-15T00:00:00": short + over + runs,
		"2024-02-01T00:00:00": over + runs + late, "2024-03-01T00:00:00": runs}}
	var out strings.Builder
	var seen []int
	n, err := History(t.Context(), b, HistoryOptions{Since: day("2024-01-15"), Until: day("2024-03-10"), Progress: func(done, all, rows int) { seen = append(seen, done, all, rows) }}, &out)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Join(historyFields,
		"|") + "\n" + strings.ReplaceAll(strings.ReplaceAll(short, "|",
		" ")+over+runs+strings.Replace(late, "lines\n", "", 1), "¦", "|")
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
	if n != (HistoryCount{Rows: 4, Again: 3, Broken: 1}) {
		t.Errorf("%+v", n)
	}
	if got := strings.Join(b.asked, ", "); got !=
		"2024-01-15T00:00:00 2024-02-01T00:00:00, 2024-02-01T00:00:00 2024-03-01T00:00:00, 2024-03-01T00:00:00 2024-03-10T00:00:00" {
		t.Errorf("asked %s", got)
	}
	if len(seen) != 12 || seen[10] != 3 || seen[11] != 4 {
		t.Errorf("progress %v", seen)
	}
}

func TestHistoryByAccount(t *testing.T) {
	b := &books{answers: map[string]string{"2024-01-15T00:00:00": short}}
	var out strings.Builder
	if _,
		err := History(t.Context(), b, HistoryOptions{Since: day("2024-01-15"), Until: day("2024-01-16"), Accounts: true},
		&out); err != nil || !strings.HasPrefix(out.String(), "JobID|User|Partition|Account|Cluster|") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

func TestHistorySaysWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		b     *books
		until string
		kind  error
		want  string
	}{
		"no accounts": {&books{fails: &ExitError{"sacct", 1, "Slurm accounting storage is disabled"}}, "2024-02-01",
			live.ErrUnsupported, "keeps no accounts"},
		"nobody": {&books{fails: &ExitError{"sacct", 1,
			"sacct: error: slurm_persist_conn_open: Something happened with the receiving/sending of the persistent connection init message: Unable to connect to database"}}, "2024-02-01", live.ErrUnreachable, "Unable to connect"},
		"fields": {&books{answers: map[string]string{"2024-01-15T00:00:00": "1¦2¦3¦4\n"}}, "2024-02-01",
			live.ErrUnsupported, "sacct prints 4 fields, want 19"},
		"backwards": {&books{}, "2024-01-01", nil, "want a time before 2024-01-01 00:00:00"},
	} {
		_, err := History(t.Context(), c.b, HistoryOptions{Since: day("2024-01-15"), Until: day(c.until)}, &strings.Builder{})
		if err == nil || c.kind != nil && !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
