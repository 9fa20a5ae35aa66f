package workload

import (
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"clustergym/internal/raced"
	"clustergym/traces"
)

// read reads a file of text that is of a format.
func read(t *testing.T, format, text string) (*Trace, []traces.Job) {
	t.Helper()
	cfg := DefaultTraceConfig()
	cfg.File = file(t, "trace", text)
	tr, err := OpenUntimed(t.Context(), cfg)
	if err != nil {
		t.Fatalf("%s: %v", format, err)
	}
	jobs, err := traces.ReadAll(tr)
	if err != nil {
		t.Errorf("%s: %v", format, err)
	}
	return tr, jobs
}

// rows holds a few made-up rows of every format, and the jobs in them.
var rows = []struct {
	format, text     string
	jobs, left       int
	timeless, sorted bool
}{
	{format: FormatCSV, text: native, jobs: 3, sorted: true},
	{format: FormatSWF, text: workload, jobs: 2, left: 1, sorted: true},
	{format: formatPhilly, text: table, jobs: 3},
	{format: formatSacct,
		text: "JobID|User|Partition|Submit|Start|End|Elapsed|ElapsedRaw|Timelimit|TimelimitRaw|State|AllocTRES|ReqTRES|ReqGRES|NNodes|AllocNodes|NCPUS|AllocCPUS|ReqMem|Cluster\n" +
			"7|ann|gpu|2024-03-01T12:00:00|2024-03-01T12:01:00|2024-03-01T12:02:00|00:01:00|60|00:05:00|5|COMPLETED|cpu=8,gres/gpu=2,mem=64G,node=1|||1|1|8|8|64G|c\n" +
			"7.batch||||||00:01:00|60|||COMPLETED||||1|1|8|8||c\n8|ann|gpu|2024-03-01T12:00:00|Unknown|Unknown|00:00:00|0|00:05:00|5|PENDING||gres/gpu=2||1|0|8|8|64G|c\n", jobs: 1, left: 1},
	{format: "philly-attempts", text: "job_id,vc,num_gpus,submitted_time,attempt,start_time,end_time\n" +
		"a,x,4,2017-10-09 07:00:55,0,2017-10-09 07:01:55,2017-10-09 08:01:55\n", jobs: 1},
	{format: "alibaba-spot",
		text: "job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,job_type\n" +
			"437261,57,A100-SXM4-80GB,15,1,94,9589663,71718,Spot\n437262,57,A10,15,1,0,0,71718,HP\n", jobs: 1, left: 1},
	{format: "helios", sorted: true,
		text: "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n" +
			"71,uA,vcA,1,1,1,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:41:01,2020-06-10 04:55:09,36848,0\n74,uC,vcC,0,8,1,CANCELLED,2020-06-09 18:41:29,,,0,0\n", jobs: 1, left: 1},
	{format: "openb",
		text: "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n" +
			"p1,4000,512,1,500,,LS,Running,10,90,20\np2,4000,512,1,500,,LS,Pending,10,90,\n", jobs: 1, left: 1},
	{format: "openb", text: "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np1,4000,512,1,500\n", jobs: 1, timeless: true},
	{format: "dlrm",
		text: "instance_sn,role,app_name,cpu_request,cpu_limit,gpu_request,gpu_limit,rdma_request,rdma_limit,memory_request,memory_limit," +
			"disk_request,disk_limit,max_instance_per_node,creation_time,scheduled_time,deletion_time\n" +
			"i1,HN,app_1,8,8,1,1,25,25,60,60,300,300,-1,5,7,90\ni2,CN,app_1,8,8,0,0,25,25,60,60,300,300,-1,,,90\n", jobs: 1,
		left: 1},
	{format: "pai", text: ",job_name,norm_job_submit_time,ddl,A100,V100\n0,j1,0,inf,100,200\n1,j2,0,900,50,70\n", jobs: 2},
	{format: "acme", sorted: true,
		text: "job_id,arrival_time,num_iteration,iteration_computing_time,iteration_networking_time,gpu_workers,ps,gpu_per_worker," +
			"cpu_per_gpu_worker,cpu_per_ps_worker,tensorsizes,profiled_network\n1,0,100,0.5,0.75,2,0,8,15,0,5,0.5\n", jobs: 1},
	{format: "tiresias",
		text: "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\r\n1,4,0,100,vgg16,60,5\r\n2,1,5,100,vgg16,0,5\r\n", jobs: 1, left: 1},
	{format: "dally",
		text: "job,arrival,gpus,model,iterations,time_per_iteration,total_iterations_in_file,job_group\n7,60.5,4,VGG,1000,0.02,1000,3\n", jobs: 1},
	{format: "chronus",
		text: "job_id,user,num_gpu,submit_time,iterations,model_name,duration,interval,expect_time_list,expect_value_list,best_effort,job_type\n" +
			"1,vc_a,2,5,100,vgg16,60,5,70,10,0,strict\n2,vc_a,0,5,100,vgg16,60,5,70,10,0,strict\n", jobs: 1, left: 1},
	{format: "muri",
		text: "job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_time,resource_time_0,resource_time_1,resource_time_2,priority\r\n" +
			"1,2,0,100,vgg16,16,50000,5,500,100,300,100,0\r\n", jobs: 1},
	{format: "elasticflow",
		text: "job_id,submit_time,iteration,model_name,ddl,batch_size,num_gpu,duration\n1,0,100,vgg16,900,64,2,60\n",
		jobs: 1},
	{format: "sia", text: "name,time,application,num_replicas,batch_size\nbert-0,5,bert,2,24\n", jobs: 1, timeless: true},
	{format: "alibaba-dag",
		text: "task_name,instance_num,job_name,status,start_time,end_time,plan_cpu,plan_mem\nM1,2,j1,Terminated,5,9,100,1\n" +
			"R2_1,1,j1,Terminated,5,19,100,1\nM1,2,j2,Failed,6,9,100,1\n", jobs: 1, left: 1, sorted: true},
	{format: "tpch",
		text: `{"1":{"edges":[[0,1]],"spark_stage_id":{},"stages":[{"fresh_durations":{},"first_wave":{"2":[40]},"rest_wave":{}},` +
			`{"fresh_durations":{},"first_wave":{"2":[50]},"rest_wave":{}}]}}`, jobs: 1},
	{format: "gavel", text: "ResNet-18 (batch size 64)\tpython3 main.py --data %s\t--num_steps\t1\t1000\t5\t2\n", jobs: 1,
		timeless: true},
}

func TestEveryFormatIsFoundAndRead(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range rows {
		seen[c.format] = true
		for _, f := range formats {
			lenient := f.Name == FormatCSV || f.Name == formatPhilly // they are tried last
			if f.sniff([]byte(c.text)) != (f.Name == c.format) && !lenient {
				t.Errorf("%s: taken for %s: %v", c.format, f.Name, f.Name != c.format)
			}
		}
		tr, jobs := read(t, c.format, c.text)
		i := tr.Info()
		if i.Format != c.format || i.Jobs != c.jobs || len(jobs) != c.jobs || i.Dropped != c.left ||
			i.Read != c.jobs+c.left || i.Timeless != c.timeless {
			t.Errorf("%s: %+v, want %d jobs and %d left out", c.format, i, c.jobs, c.left)
		}
		total := 0
		for _, k := range i.Skipped {
			total += k.Count
			if !strings.Contains(i.String(), k.Reason) {
				t.Errorf("%s: %q does not say %q", c.format, i, k.Reason)
			}
		}
		if total != i.Dropped {
			t.Errorf("%s: %+v left out by reason, %d in all", c.format, i.Skipped, i.Dropped)
		}
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
		if f := format(c.format); f == nil || f.Sorted != c.sorted {
			t.Errorf("%s: %+v", c.format, f)
		}
		cfg := DefaultTraceConfig()
		cfg.File = i.File
		_, _, err := LoadTrace(cfg)
		if needs := c.timeless && c.format != "openb"; needs != (err != nil) ||
			needs && !strings.Contains(err.Error(), "want profiles") {
			t.Errorf("%s: loading it gave %v", c.format, err)
		}
	}
	for _, name := range FormatNames()[1:] {
		if !seen[name] {
			t.Errorf("%s is not tried", name)
		}
	}
}

// A trace says which of names and groups its jobs can have, where some of them do.
func TestTracesSayWhetherJobsHaveNamesAndGroups(t *testing.T) {
	none := rows[0]
	none.text = "submit_time,duration,num_gpu,job_name,account\n0,1,1,train.sh,lab\n1,1,1,,\n"
	log := rows[1]
	log.text = "1 0 -1 9 4 -1 -1 4 -1 -1 1 3 12 345 1 -1 -1 -1\n"
	accounts := rows[3]
	accounts.text = "JobID|JobName|Account|Submit|ElapsedRaw|AllocTRES\n1|train.sh|lab|2024-03-01T12:00:00|60|gres/gpu=1\n"
	found := map[string]string{}
	for _, c := range append(slices.Clone(rows), none, log, accounts) {
		tr, jobs := read(t, c.format, c.text)
		name, group := tr.Named()
		for _, j := range jobs {
			if j.Name != "" {
				found[c.format] += "n"
			}
			if j.Group != "" {
				found[c.format] += "g"
			}
			if j.Name != "" && !name || j.Group != "" && !group {
				t.Errorf("%s: name %q and group %q, but Named returns %v, %v", c.format, j.Name, j.Group, name, group)
			}
		}
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	}
	want := map[string]string{FormatCSV: "ng", FormatSWF: "ng", formatSacct: "ng", "dlrm": "n", "acme": "n", "gavel": "n",
		"dally": "g", "alibaba-spot": "g"}
	for f, k := range want {
		if !strings.Contains(found[f], k) && found[f] != k {
			t.Errorf("%s: found %q, want %q", f, found[f], k)
		}
	}
	for f := range found {
		if want[f] == "" {
			t.Errorf("%s: jobs have names or groups", f)
		}
	}
}

func TestFormatsAreListedInOrder(t *testing.T) {
	names := FormatNames()
	if names[0] != FormatAuto || names[1] != FormatCSV || !slices.IsSorted(names[2:]) || len(names) != len(formats)+1 {
		t.Errorf("%v", names)
	}
	for _, f := range Formats() {
		if f.What == "" || f.KnownBy == "" || f.Columns == "" {
			t.Errorf("%s is not described", f.Name)
		}
	}
}

func TestWhatLiesBesideTracesIsCalledByItsName(t *testing.T) {
	for text, want := range map[string]string{
		"machine,gpu_type,cap_cpu,cap_mem,cap_gpu\nm1,T4,96,512,2\n": "this is a list of machines",
		"duration\r\n50\r\n":                         "this is a sample of GPU times",
		"id,start\n1,2\n":                            `its first line, "id,start", is of no known format (gymctl trace formats lists them); csv needs submit_time, duration (or start_time and end_time) and num_gpu and found none of them: use --columns submit_time=NAME,duration=NAME,num_gpu=NAME (trace.columns)`,
		"Submitted\tduration\tGPUs\n1\t2\t3\n":       `and found duration; the nearest are "Submitted" and "GPUs": use --columns submit_time=Submitted,num_gpu=GPUs (trace.columns)`,
		"hello\n":                                    `its first line, "hello", is of no known format; known are csv, acme,`,
		"\xff\xfes\x00u\x00,\x00\n\x00":              "its text is in UTF-16, want UTF-8",
		"s\x00u\x00,\x00d\x00\n\x00":                 "as in UTF-16 text or in a binary file; want text in UTF-8",
		"date,vcB,vcA,total\n2020-09-01,64,96,160\n": "this is Helios' list of the GPUs of each virtual cluster day by day, want a table of jobs",
		"[{\"status\":\"Pass\",\"vc\":\"v\",\"jobid\":\"a_1\",\"attempts\":[]}]": "this is Philly's cluster_job_log, which is JSON; want a table",
		"M1,3,j_2,1,Terminated,900,907,50,0.2\nR2_1,,j_2,1,Failed,900,911,,\n":   "this is Alibaba's batch_task.csv of 2018, which has no header; put this line before it: task_name,",
		"\xfd7zXZ\x00": "this is an xz file", "<!DOCTYPE html><html>": "this is a web page",
	} {
		cfg := DefaultTraceConfig()
		cfg.File = file(t, "x.csv", text)
		if _, err := OpenUntimed(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// throughputs is a table in Gavel's format: two types of GPUs, and one model on one and two of them.
const throughputs = `{"v100": {"('ResNet-18 (batch size 64)', 1)": {"null": 10.0}, "('ResNet-18 (batch size 64)', 2)": {"null": 16.0}},
 "k80": {"('ResNet-18 (batch size 64)', 1)": {"null": 2.5}, "('ResNet-18 (batch size 64)', 2)": {"null": 4.0}}}`

func TestRunTimesFollowFromAThroughputTable(t *testing.T) {
	cfg := DefaultTraceConfig()
	cfg.File = file(t, "jobs.trace", "ResNet-18 (batch size 64)\tmain.py\tdir\t--num_steps\t1\t1000\t2\t1\t2\t5\n"+
		"Unheard-of (batch size 64)\tmain.py\tdir\t--num_steps\t1\t1000\t2\t1\t-1\t7\n"+
		"ResNet-18 (batch size 64)\tmain.py\tdir\t--num_steps\t1\t1000\t1\t1\t-1\t9\n")
	cfg.Profiles, cfg.Reference = file(t, "simulation_throughputs.json", throughputs), "V100"
	jobs, info, err := LoadTrace(cfg)
	if err != nil {
		t.Fatal(err)
	}
	// 1000 steps at 16 a second on two GPUs, at 10 on one; the SLO of the first is twice its run time.
	if len(jobs) != 2 || jobs[0].Work != 62500*time.Millisecond || jobs[1].Work != 100*time.Second ||
		jobs[0].Deadline != 130*time.Second || jobs[1].Deadline != 0 {
		t.Errorf("%+v", jobs)
	}
	if p := jobs[0].Profile; p == nil || p != jobs[1].Profile || p.Speeds["k80"] != .25 || p.Throughput(2) != 16 {
		t.Errorf("profiles %+v and %+v", jobs[0].Profile, jobs[1].Profile)
	}
	if info.Jobs != 2 || info.Read != 3 || info.Timeless || info.Reference != "v100" ||
		!reflect.DeepEqual(info.Skipped, []Skip{{noRunTime, 1}}) {
		t.Errorf("%+v", info)
	}
	cfg.Reference = "t4"
	if _, _, err := LoadTrace(cfg); err == nil || !strings.Contains(err.Error(), `reference "t4"`) ||
		!strings.Contains(err.Error(), "k80, v100") {
		t.Errorf("%v", err)
	}
	cfg.Reference, cfg.Profiles = "", filepath.Join(t.TempDir(), "none.json")
	if _, _, err := LoadTrace(cfg); err == nil || !strings.Contains(err.Error(), "none.json") {
		t.Errorf("%v", err)
	}
}

func TestAMixGivesJobsTheirModels(t *testing.T) {
	cfg := DefaultTraceConfig()
	cfg.File, cfg.Mix = file(t, "jobs.csv", native), "topdrl-cnn"
	jobs, info, err := LoadTrace(cfg)
	if err != nil || info.Mix != "topdrl-cnn" {
		t.Fatal(err, info)
	}
	for _, j := range jobs {
		if j.Profile == nil || j.Profile.GradientBytes == 0 {
			t.Errorf("%s has no model: %+v", j.ID, j.Profile)
		}
	}
	again, _, err := LoadTrace(cfg)
	if err != nil || again[0].Profile.Name != jobs[0].Profile.Name {
		t.Errorf("another draw: %v", err)
	}
	cfg.Mix = "pasta"
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), `mix: got "pasta"`) {
		t.Errorf("%v", err)
	}
}

// published maps each published file to the format that must be found, "" if it is not a trace.
func published(path string) string {
	dir, name := filepath.Split(path)
	for _, c := range []struct{ dir, name, format string }{
		{"acme", "kalos", "acme"}, {"alibaba-dag-2018", "dag_", "alibaba-dag"}, {"alibaba-dlrm-2025", "", "dlrm"},
		{"alibaba-gpu-2023", "openb_pod", "openb"},
		{"alibaba-pai-2020", "hydra", "pai"}, {"gavel-physical", "", "gavel"}, {"philly-gavel", "", "gavel"},
		{"philly", "philly_jobs", formatPhilly},
		{"philly", "philly_multigpu", "philly-attempts"}, {"philly-chronus", "", "chronus"},
		{"philly-elasticflow", "", "elasticflow"}, {"philly-muri", "", "muri"},
		{"sia-workloads", "workload", "sia"}, {"swf", "", FormatSWF}, {"tiresias", "60_job", "tiresias"},
		{"tpch-decima", "", "tpch"},
	} {
		top, _, _ := strings.Cut(filepath.ToSlash(dir), "/")
		if top == c.dir && strings.HasPrefix(name, c.name) {
			return c.format
		}
	}
	return ""
}

func TestEveryPublishedFileIsTheRightFormatOrRefused(t *testing.T) {
	raced.Alone(t)
	root := filepath.Join("..", "..", "..", "shared", "traces")
	if _, err := os.Stat(root); err != nil {
		t.Skip("real traces not at hand: looked for in ../shared, beside this repository, of which it is no part")
	}
	files, found := 0, map[string]int{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, ".md") {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		files++
		want := published(rel)
		cfg := DefaultTraceConfig()
		cfg.File = path
		tr, err := OpenUntimed(t.Context(), cfg)
		if want == "" {
			if err == nil {
				t.Errorf("%s is no trace and was taken for %s", rel, tr.Info().Format)
				return tr.Close()
			}
			if msg := err.Error(); !strings.Contains(msg, "of no known format") && !strings.Contains(msg, "this is a") &&
				!strings.Contains(msg, "this is Helios' list") || len(msg) > 500 {
				t.Errorf("%s: %v", rel, err)
			}
			return nil
		}
		if err != nil {
			t.Errorf("%s: %v", rel, err)
			return nil
		}
		st, err := traces.Summarize(tr)
		i := tr.Info()
		if err != nil || i.Format != want || st.Jobs != i.Jobs || i.Read != i.Jobs+i.Dropped || i.Jobs == 0 {
			t.Errorf("%s: %v, %v; want format %s", rel, i, err, want)
		}
		found[i.Format]++
		return tr.Close()
	})
	if err != nil {
		t.Fatal(err)
	}
	// no published file here is in the native format, in Slurm's, Dally's, Helios' or that of spot GPUs
	if len(found) != len(formats)-5 {
		t.Errorf("%d files, by format %v", files, found)
	}
}

func TestRealTracesGetRunTimesFromRealTables(t *testing.T) {
	root := filepath.Join("..", "..", "..", "shared", "traces")
	if _, err := os.Stat(root); err != nil {
		t.Skip("real traces not at hand: looked for in ../shared, beside this repository, of which it is no part")
	}
	for _, c := range []struct {
		file, table, reference string
		jobs                   int
	}{
		{"philly-gavel/0e4a51.trace.gz", "profiles-gavel/simulation_throughputs.json.gz", "V100", 1181},
		{"gavel-physical/max_min_fairness.trace", "profiles-gavel/physical_cluster_throughputs.json.gz", "v100", 96},
		{"sia-workloads/philly/workload-1.csv", "profiles-sia", "rtx", 160},
		{"philly-elasticflow/philly_103959.csv", "profiles-elasticflow", "A100", 876},
	} {
		cfg := DefaultTraceConfig()
		cfg.File, cfg.Profiles, cfg.Reference = filepath.Join(root, c.file), filepath.Join(root, c.table), c.reference
		jobs, info, err := LoadTrace(cfg)
		if err != nil || len(jobs) != c.jobs || info.Dropped != 0 {
			t.Errorf("%s: %d jobs of %d, %v, %v", c.file, len(jobs), c.jobs, info, err)
			continue
		}
		for _, j := range jobs {
			if j.Work <= 0 || j.Profile == nil || j.Profile.Compute <= 0 {
				t.Errorf("%s: job %s (%s on %d GPUs) has run time %v and profile %+v", c.file, j.ID, j.Model, j.GPUs, j.Work,
					j.Profile)
				break
			}
		}
	}
}
