package csv

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"clustergym/traces"
)

func told(jobs []traces.Job) string {
	var all []string
	for _, j := range jobs {
		all = append(all, fmt.Sprintf("%s %s %v+%v %dn %s", j.ID, j.Open, j.Waited, j.Work, j.Nodes, j.Hosts))
	}
	return strings.Join(all, "; ")
}

func TestNodesAndHosts(t *testing.T) {
	for text, want := range map[string]string{
		"nodes,hosts\n2,\"g[1-2]\"\n": "0 ended 0s+1s 2n g[1-2]",
		"NNodes,NodeList\n1,g7\n":     "0 ended 0s+1s 1n g7",
		"nodes\ng[1-2]\n":             "0 ended 0s+1s 0n g[1-2]", // names where a number could be
		"hosts\n4\n":                  "0 ended 0s+1s 0n ",       // a number of hosts, as files had before
		"nodes,hosts\nfew,g[\n":       "0 ended 0s+1s 0n few",
		"nodes,hosts\n-,None\n":       "0 ended 0s+1s 0n ",
		"nodes,Nodes\n3,4\n":          "0 ended 0s+1s 3n ",
		"Nodes,NODES\n3,4\n":          "0 ended 0s+1s 0n ", // either could be meant
	} {
		head, row, _ := strings.Cut(text, "\n")
		d, err := NewReader(strings.NewReader("submit_time,duration,num_gpu,"+head+"\n0,1,8,"+row), "t.csv", Options{})
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		jobs, err := traces.ReadAll(d)
		if err != nil || told(jobs) != want {
			t.Errorf("%q: %s, %v, want %s", text, told(jobs), err, want)
		}
	}
	text := "submit_time,duration,num_gpu,nodes\n0,1,8,2\n"
	d, err := NewReader(strings.NewReader(text), "t.csv", Options{Columns: map[string]string{"workers": "nodes"}})
	if err != nil {
		t.Fatal(err)
	}
	if jobs, err := traces.ReadAll(d); err != nil || jobs[0].GPUs != 16 || jobs[0].Nodes != 0 {
		t.Errorf("%+v, %v", jobs, err)
	}
	if d, err = NewReader(strings.NewReader(text), "t.csv", Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := traces.ReadAll(d); err != nil || len(d.Notes()) != 1 || !strings.Contains(d.Notes()[0], "workers=nodes") {
		t.Errorf("%q, %v", d.Notes(), err) // num_gpu may be that of one node
	}
}

func TestRowsThatHadNotEnded(t *testing.T) {
	for text, c := range map[string]struct {
		want, closed string
		until        time.Duration
	}{
		"job_id,submit_time,start_time,end_time,num_gpu,status\na,100,110,200,1,completed\nb,120,130,,1,running\n" +
			"c,140,,,1,pending\nd,150,,,1,cancelled\n": {
			"a ended 10s+1m30s 0n ; b still running 10s+0s 0n ; c still waiting 0s+0s 0n ", "a ended 10s+1m30s 0n ",
			200 * time.Second},
		"job_id,submit_time,duration,num_gpu,state,eligible\na,100,5,1,COMPLETED,101\nb,120,7,1,RUNNING,100\n" +
			"c,140,0,1,PENDING,300\n": {
			"a ended 0s+5s 0n ; b still running 0s+7s 0n ; c still waiting 0s+0s 0n ",
			"a ended 0s+5s 0n ; b ended 0s+7s 0n ; c ended 0s+0s 0n ", 140 * time.Second},
		"job_id,submit_time,start_time,end_time,num_gpu\na,2024-03-01 10:00:00,2024-03-01 10:00:10,2024-03-01 10:01:00,1\n" +
			"b,2024-03-01 10:00:30,,,1\n": {
			"a ended 10s+50s 0n ; b still waiting 0s+0s 0n ", "a ended 10s+50s 0n ", time.Minute},
	} {
		for _, unsorted := range []bool{false, true} {
			d, err := NewReader(strings.NewReader(text), "t.csv", Options{Unended: true, Unsorted: unsorted})
			if err != nil {
				t.Fatal(err)
			}
			jobs, err := traces.ReadAll(d)
			if unsorted {
				d.Rebase(jobs)
			}
			if err != nil || told(jobs) != c.want || d.Until() != c.until {
				t.Errorf("%q: %s until %v, %v\nwant %s until %v", text, told(jobs), d.Until(), err, c.want, c.until)
			}
			if strings.Contains(text, "eligible") && (jobs[0].Eligible != time.Second || jobs[1].Eligible != 0) {
				t.Errorf("%+v", jobs)
			}
		}
		d, err := NewReader(strings.NewReader(text), "t.csv", Options{})
		if err != nil {
			t.Fatal(err)
		}
		if jobs, err := traces.ReadAll(d); err != nil || told(jobs) != c.closed {
			t.Errorf("%q: %s, %v, want %s", text, told(jobs), err, c.closed)
		}
	}
}
