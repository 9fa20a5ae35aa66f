package slurm

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"clustergym/internal/hostlist"
	"clustergym/live"
)

// own are the keys of scontrol show that stand on a line of their own, because their value may have blanks and equal
// signs.
var own = []string{"AdminComment=", "Comment=", "SystemComment=", "Command=", "WorkDir=", "StdErr=", "StdIn=",
	"StdOut=", "Reason=", "OS=", "Switches=", "BurstBuffer=", "MailUser="}

// show reads what scontrol show prints: entities apart by blank lines, keys and values. Lines that begin with five
// blanks tell of the nodes of a job, and are given whole.
func show(r io.Reader, first string, each func(keys map[string]string, nodes []string) error) error {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 1<<16), 1<<26)
	keys, nodes := map[string]string{}, []string(nil)
	done := func() error {
		if keys[first] == "" {
			return nil
		}
		err := each(keys, nodes)
		clear(keys)
		nodes = nodes[:0]
		return err
	}
	for s.Scan() {
		line := strings.TrimRight(s.Text(), " ")
		switch {
		case strings.HasPrefix(line, first+"="):
			if err := done(); err != nil {
				return err
			}
		case strings.HasPrefix(line, "     Nodes="):
			nodes = append(nodes, strings.TrimSpace(line))
			continue
		}
		split(strings.TrimSpace(line), keys)
	}
	if err := s.Err(); err != nil {
		return err
	}
	return done()
}

// split cuts a line into keys and values. The first value of a key counts.
func split(line string, keys map[string]string) {
	put := func(k, v string) {
		if _, there := keys[k]; !there {
			if v == "(null)" {
				v = ""
			}
			keys[k] = v
		}
	}
	for line != "" {
		k, rest, found := strings.Cut(line, "=")
		if !found || strings.ContainsAny(k, " ") && !strings.Contains(k, "/") {
			return // the rest of a value
		}
		for _, o := range own {
			if strings.HasPrefix(line, o) && (o != "Reason=" || keys["NodeName"] != "") {
				put(k, rest)
				return
			}
		}
		if k == "JobName" { // the last of its line
			put(k, rest)
			return
		}
		value, next, _ := strings.Cut(rest, " ")
		put(k, value)
		line = strings.TrimLeft(next, " ")
	}
}

// seconds reads a time: seconds since 1970, or 0 for Unknown, None and N/A.
func seconds(s string) int64 {
	v, err := strconv.ParseInt(s, 10, 62)
	if err != nil {
		return 0
	}
	return v
}

// whole reads the number at the beginning of s: 2 of 2-4.
func whole(s string) int64 {
	end := 0
	for end < len(s) && s[end] >= '0' && s[end] <= '9' {
		end++
	}
	v, _ := strconv.ParseInt(s[:end], 10, 40) // 0 if there is none
	return v
}

// showJobs reads scontrol -d show job under SLURM_TIME_FORMAT=%s.
func showJobs(r io.Reader, each func(*record) error) error {
	return show(r, "JobId", func(k map[string]string, nodes []string) error {
		j := record{
			id: whole(k["JobId"]), array: whole(k["ArrayJobId"]), het: whole(k["HetJobId"]), offset: whole(k["HetJobOffset"]),
			task: -1, throttle: whole(k["ArrayTaskThrottle"]),
			states: strings.Split(strings.ToUpper(k["JobState"]), ","), reason: k["Reason"],
			account: k["Account"], partition: k["Partition"], name: k["JobName"],
			admin: k["AdminComment"], comment: k["Comment"], dependency: k["Dependency"], required: k["ReqNodeList"],
			excluded: k["ExcNodeList"],
			nodes:    k["NodeList"], submit: seconds(k["SubmitTime"]), eligible: seconds(k["EligibleTime"]),
			start: seconds(k["StartTime"]), end: seconds(k["EndTime"]),
			limit: parseLimit(k["TimeLimit"]), nodeCount: whole(k["NumNodes"]), cpus: whole(k["NumCPUs"]),
			ntasks: whole(k["NumTasks"]), priority: whole(k["Priority"]),
			restarts: whole(k["Restarts"]), perNode: k["TresPerNode"], perJob: k["TresPerJob"], perTask: k["TresPerTask"],
			perSocket: k["TresPerSocket"],
			exclusive: k["OverSubscribe"] == "NO", sockets: whole(k["Socks/Node"]),
		}
		j.user, _, _ = strings.Cut(k["UserId"], "(")
		if k["AllocTRES"] != "" {
			j.alloc = k["AllocTRES"]
		}
		if j.request = k["ReqTRES"]; j.request == "" {
			j.request = k["TRES"]
		}
		if j.perNode == "" {
			j.perNode = k["Gres"] // before 18.08
		}
		if j.id <= 0 || k["JobState"] == "" {
			return fmt.Errorf("%w: scontrol shows a job without JobId or JobState", live.ErrUnsupported)
		}
		if id := k["ArrayTaskId"]; id != "" && id != "N/A" {
			if n, err := strconv.ParseInt(id, 10, 32); err == nil && j.states[0] != "PENDING" {
				j.task = n
			} else {
				j.waiting = id
			}
		}
		for _, line := range nodes { // Nodes=g[1-2] CPU_IDs=0 Mem=512000 GRES=gpu:a100:8(IDX:0-7)
			at := map[string]string{}
			split(line, at)
			hosts, err := hostlist.Expand(at["Nodes"])
			if err != nil {
				return fmt.Errorf("%w: job %d: %w", live.ErrUnsupported, j.id, err)
			}
			gres := at["GRES"]
			if gres == "" {
				gres = at["GRES_IDX"] // before 20.02
			}
			for range hosts {
				j.detail = append(j.detail, gres)
			}
		}
		return each(&j)
	})
}

// showNodes reads scontrol show node.
func showNodes(r io.Reader, each func(*machine) error) error {
	return show(r, "NodeName", func(k map[string]string, _ []string) error {
		m := machine{name: k["NodeName"], gres: k["Gres"], cpus: whole(k["CPUTot"]), mem: whole(k["RealMemory"]),
			reason: k["Reason"]}
		if i := strings.LastIndex(m.reason, " ["); i > 0 {
			m.reason = m.reason[:i] // by whom and when
		}
		for s := range strings.SplitSeq(strings.ToUpper(k["State"]), "+") {
			if strings.Contains(s, "*") {
				m.states = append(m.states, "NOT_RESPONDING")
			}
			m.states = append(m.states, strings.TrimRight(s, "*~#!%$@^-"))
		}
		if p := k["Partitions"]; p != "" {
			m.partitions = strings.Split(p, ",")
		}
		return each(&m)
	})
}

// eachLine calls each with every line, without the blanks around it.
func eachLine(r io.Reader, each func(line string) error) error {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 1<<16), 1<<24)
	for s.Scan() {
		if err := each(strings.TrimSpace(s.Text())); err != nil {
			return err
		}
	}
	return s.Err()
}

// showConfig reads scontrol show config: key = value.
func showConfig(r io.Reader) (config, error) {
	c := config{}
	err := eachLine(r, func(line string) error {
		if k, v, found := strings.Cut(line, "="); found {
			if v = strings.TrimSpace(v); v == "(null)" {
				v = ""
			}
			c[strings.ToLower(strings.TrimSpace(k))] = v
		}
		return nil
	})
	return c, err
}

// config is what scontrol show config prints, by its keys in small letters.
type config map[string]string

func (c config) get(key string) string { return c[strings.ToLower(key)] }

// weights are the weights of all other factors of the priority together.
func (c config) weights() (sum int64) {
	for _, f := range []string{"Age", "Assoc", "FairShare", "JobSize", "Partition", "QOS"} {
		sum += whole(c.get("PriorityWeight" + f))
	}
	for item := range strings.SplitSeq(c.get("PriorityWeightTRES"), ",") {
		_, v, _ := strings.Cut(item, "=")
		sum += whole(v)
	}
	return sum
}

// release reads "slurm-wlm 22.05.8": major and minor, 0 if it is none.
func release(s string) (major, minor int) {
	for f := range strings.FieldsSeq(s) {
		if n, _ := fmt.Sscanf(f, "%d.%d", &major, &minor); n == 2 {
			return major, minor
		}
	}
	return 0, 0
}
