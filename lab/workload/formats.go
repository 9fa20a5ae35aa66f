package workload

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"clustergym/traces"
	"clustergym/traces/acme"
	"clustergym/traces/alibaba"
	"clustergym/traces/chronus"
	"clustergym/traces/csv"
	"clustergym/traces/dally"
	"clustergym/traces/dlrm"
	"clustergym/traces/elasticflow"
	"clustergym/traces/gavel"
	"clustergym/traces/inventory"
	"clustergym/traces/muri"
	"clustergym/traces/openb"
	"clustergym/traces/pai"
	"clustergym/traces/philly"
	"clustergym/traces/sacct"
	"clustergym/traces/sia"
	"clustergym/traces/spot"
	"clustergym/traces/swf"
	"clustergym/traces/tiresias"
	"clustergym/traces/tpch"
)

// The names of some formats.
const (
	FormatAuto   = "auto" // recognise the format by content
	FormatCSV    = "csv"
	FormatSWF    = "swf"
	formatPhilly = "philly"
	formatSacct  = "sacct"
	FormatSynth  = "synth" // generated workloads; no file has this format
)

// Format describes one trace format that can be read.
type Format struct {
	Name    string `json:"name"`
	What    string `json:"what"`     // one line on its contents
	KnownBy string `json:"known_by"` // how auto recognises it
	Sorted  bool   `json:"sorted"`   // rows must be in order of submit, unless --sort is given
	Columns string `json:"columns"`  // what they contain, in words
	// Profiles is true if the file has no run times, and they follow from a throughput table.
	Profiles bool `json:"needs_profiles"`
	Writes   bool `json:"writes"` // gymctl trace convert can write it

	sniff func(head []byte) bool
	open  func(r io.Reader, c *TraceConfig) (traces.Stream, error)
}

// formats are the formats in the order in which auto tries them. Formats with an exact header come first. The native
// format and Philly's come last, because they accept headers with missing columns, so that their readers can name the
// columns.
var formats = []Format{
	{
		Name:    FormatSWF,
		What:    "Standard Workload Format 2.2 of the Parallel Workloads Archive; processors are counted where GPUs are",
		KnownBy: "; comments, or lines of 18 numbers between blanks", Sorted: true, Writes: true,
		Columns: "18 fields in fixed order, -1 where unknown; executable and group are name and group of a job; rows " +
			"without run time or size are dropped and counted",
		sniff: sniffSWF,
		open: func(r io.Reader, c *TraceConfig) (traces.Stream, error) {
			return swf.NewReader(r, c.File, swf.Options{Unsorted: c.Sort})
		},
	},
	{
		Name: formatSacct, What: "the accounting of a Slurm cluster as sacct -P or sacct --json prints it",
		KnownBy: "a header with JobID and other fields of sacct between vertical bars, or a document of sacct --json",
		Columns: "JobID, Submit, ElapsedRaw or Elapsed (or Start and End), AllocTRES, ReqTRES or ReqGRES; optional NNodes, " +
			"NodeList, NCPUS, ReqMem, Timelimit, State, User, " +
			"Partition, JobName, Account, Eligible, Cluster; any order of rows; job steps are skipped; jobs that did not start or end " +
			"are left out and counted",
		sniff: sacct.Sniff,
		open: func(r io.Reader, c *TraceConfig) (traces.Stream, error) {
			return sacct.NewReader(r, c.File, sacct.Options{Delimiter: c.delimiter(), Unended: c.Unended, Runs: c.Runs})
		},
	},
	{
		Name:    "philly-attempts",
		What:    "the scheduling attempts of Philly's larger jobs, one row each; run time is the sum of a job's attempts",
		KnownBy: "a header with job_id, vc, num_gpus, submitted_time, attempt, start_time and end_time",
		Columns: "as in the header; any order of rows", sniff: philly.SniffAttempts,
		open: func(r io.Reader, c *TraceConfig) (traces.Stream, error) { return philly.NewAttempts(r, c.File) },
	},
	{
		Name: "openb",
		What: "the pod lists of Alibaba's GPU-sharing cluster (cluster-trace-gpu-v2023, ATC 2023); in a list without " +
			"times all are sent at 0 and run for an hour",
		KnownBy: "a header with name, cpu_milli, memory_mib, num_gpu and gpu_milli",
		Columns: "those, and gpu_spec, qos, pod_phase, creation_time, deletion_time, scheduled_time; pods never placed are " +
			"left out and counted",
		sniff: openb.Sniff,
		open: func(r io.Reader, c *TraceConfig) (traces.Stream, error) {
			return openb.NewReader(r, c.File, openb.Options{})
		},
	},
	{
		Name: "alibaba-spot",
		What: "Alibaba's trace of spot GPUs (cluster-trace-v2026-spot-gpu, ASPLOS 2026): jobs of high priority and jobs " +
			"that may be stopped",
		KnownBy: "a header with job_name, organization, gpu_model, gpu_request, worker_num, submit_time, duration and " +
			"job_type",
		Columns: "those, and cpu_request; GPUs and cores are those of one worker times worker_num; organization is the " +
			"virtual cluster, job_type (HP or Spot) the group; any order of rows",
		sniff: spot.Sniff,
		open:  func(r io.Reader, c *TraceConfig) (traces.Stream, error) { return spot.NewReader(r, c.File) },
	},
	{
		Name: "helios",
		What: "the job logs of SenseTime's clusters (Helios, SC 2021) and of Acme's Seren and Kalos (NSDI 2024), as published", Sorted: true,
		KnownBy: "a header with job_id, user, gpu_num, cpu_num, node_num, state, submit_time, start_time, end_time, " +
			"duration and queue",
		Columns: "those, and vc, type (the name of a job); run time is end_time less start_time, because duration contains " +
			"the queue at Kalos; jobs that did not start or end are left out and counted",
		sniff: func(head []byte) bool { return traces.HasColumns(head, heliosColumns...) },
		open: func(r io.Reader, c *TraceConfig) (traces.Stream, error) {
			return openHelios(r, c)
		},
	},
	{
		Name:    "dlrm",
		What:    "Alibaba's trace of GPU-disaggregated recommendation serving (cluster-trace-gpu-v2025, NSDI 2025)",
		KnownBy: "a header with instance_sn, role, app_name and requests of cores, GPUs and memory",
		Columns: "as in the header; app_name is the name of a job; instances that existed before the trace or outlived it " +
			"have no run time, and are left out and counted", sniff: dlrm.Sniff,
		open: func(r io.Reader, c *TraceConfig) (traces.Stream, error) {
			return dlrm.NewReader(r, c.File, dlrm.Options{})
		},
	},
	{
		Name: "pai", What: "deadline workloads made from Alibaba's PAI trace (hydra): one run time for each GPU type",
		KnownBy: "a header with job_name, norm_job_submit_time, ddl and GPU types",
		Columns: "as in the header; run time is that on the reference type, A100 unless --reference", sniff: pai.Sniff,
		open: func(r io.Reader, c *TraceConfig) (traces.Stream, error) {
			return pai.NewReader(r, c.File, pai.Options{Reference: c.Reference})
		},
	},
	{
		Name: "acme", What: "the converted trace of Acme's LLM cluster Kalos (NSDI 2024)", Sorted: true,
		KnownBy: "a header with job_id, arrival_time, num_iteration, gpu_workers and gpu_per_worker",
		Columns: "as in the header; run time is num_iteration half seconds; iteration_networking_time names pretraining",
		sniff:   acme.Sniff,
		open: func(r io.Reader, c *TraceConfig) (traces.Stream, error) {
			return acme.NewReader(r, c.File, acme.Options{Unsorted: c.Sort})
		},
	},
	{
		Name: "dally",
		What: "the workloads of Dally's simulator (arXiv 2401.16492): run time is iterations times time_per_iteration over " +
			"gpus",
		KnownBy: "a header of job, arrival, gpus, model, iterations, time_per_iteration and perhaps " +
			"total_iterations_in_file and job_group, and no others",
		Columns: "as in the header; seconds; any order of rows; the six models bring their profiles; job_group is the " +
			"group of a job", sniff: dally.Sniff,
		open: func(r io.Reader, c *TraceConfig) (traces.Stream, error) { return dally.NewReader(r, c.File) },
	},
	{
		Name: "tiresias", What: "the workload of Tiresias' testbed (NSDI 2019)",
		KnownBy: "a header of job_id, num_gpu, submit_time, iterations, model_name, duration and perhaps interval, and no " +
			"others",
		Columns: "as in the header; seconds; any order of rows", sniff: tiresias.Sniff,
		open: func(r io.Reader, c *TraceConfig) (traces.Stream, error) { return tiresias.NewReader(r, c.File) },
	},
	{
		Name: "chronus",
		What: "the deadline traces of Chronus (SoCC 2021): Philly's arrivals with models and deadlines drawn by the " +
			"authors",
		KnownBy: "a header with expect_time_list and expect_value_list",
		Columns: "job_id, user, num_gpu, submit_time, iterations, model_name, duration, expect_time_list, " +
			"expect_value_list; minutes; any order of rows",
		sniff: chronus.Sniff,
		open:  func(r io.Reader, c *TraceConfig) (traces.Stream, error) { return chronus.NewReader(r, c.File) },
	},
	{
		Name: "muri", What: "the traces of Muri (SIGCOMM 2022): Philly's arrivals with models and their stages as measured",
		KnownBy: "a header with iteration_time and resource_time_0 to 2",
		Columns: "job_id, num_gpu, submit_time, iterations, model_name, batch_size, duration, iteration_time, " +
			"resource_time_0 to 2, priority; milliseconds",
		sniff: muri.Sniff,
		open:  func(r io.Reader, c *TraceConfig) (traces.Stream, error) { return muri.NewReader(r, c.File) },
	},
	{
		Name: "elasticflow", What: "the traces of ElasticFlow (ASPLOS 2023): elastic jobs with deadlines",
		KnownBy: "a header with iteration, model_name, ddl and batch_size",
		Columns: "job_id, submit_time, iteration, model_name, ddl, batch_size, num_gpu, duration; optional real_iteration, " +
			"real_duration, best_effort",
		sniff: elasticflow.Sniff,
		open:  func(r io.Reader, c *TraceConfig) (traces.Stream, error) { return elasticflow.NewReader(r, c.File) },
	},
	{
		Name: "sia", What: "the workloads of Pollux (OSDI 2021) and Sia (SOSP 2023): applications without run times",
		Profiles: true,
		KnownBy:  "a header with name, time, application, num_replicas and batch_size",
		Columns:  "as in the header, and perhaps category; run times follow from the applications' measurements",
		sniff:    sia.Sniff,
		open:     func(r io.Reader, c *TraceConfig) (traces.Stream, error) { return sia.NewReader(r, c.File) },
	},
	{
		Name: "alibaba-dag", What: "task graphs of Alibaba's cluster-trace-v2018; instances are counted where GPUs are",
		Sorted:  true,
		KnownBy: "a header with task_name, instance_num, job_name and start_time",
		Columns: "those, and status, end_time, plan_cpu, plan_mem; optional mean_instance_duration; jobs that did not end " +
			"are left out and counted",
		sniff: alibaba.Sniff,
		open: func(r io.Reader, c *TraceConfig) (traces.Stream, error) {
			return alibaba.NewReader(r, c.File, alibaba.Options{Unsorted: c.Sort})
		},
	},
	{
		Name: "tpch",
		What: "the 22 queries of TPC-H as task graphs, as measured on Spark for Decima (SIGCOMM 2019); one executor " +
			"counts as one GPU",
		KnownBy: "a JSON object with edges and fresh_durations",
		Columns: "edges and stages of each query; run time is the sum of all tasks, everything is sent at 0",
		sniff:   tpch.Sniff,
		open: func(r io.Reader, c *TraceConfig) (traces.Stream, error) {
			return tpch.NewReader(r, c.File, tpch.Options{})
		},
	},
	{
		Name: "gavel", What: "the traces of Gavel (OSDI 2020): jobs in training steps", Profiles: true,
		KnownBy: "lines of 7 or 10 fields between tabs, without a header",
		Columns: "job type, command (the name of a job), steps, arrival, GPUs …; run times follow from a throughput table",
		sniff:   gavel.Sniff,
		open:    func(r io.Reader, c *TraceConfig) (traces.Stream, error) { return gavel.NewReader(r, c.File) },
	},
	{
		Name: FormatCSV, What: "the native format: a CSV file with a header; other columns are kept as labels", Sorted: true,
		Writes:  true,
		KnownBy: "a header with submit_time, duration (or start_time and end_time) and num_gpu, in any capitals",
		Columns: "submit_time (seconds, a unix time or a date), duration (seconds, 1h30m or 1-12:00:00), num_gpu (below 1: " +
			"a share of one GPU); optional job_id, user, vc, gpu_type " +
			"(alternatives joined by |), num_cpu, mem_gb, estimate, model, iterations, deadline, priority, min_gpu, max_gpu, " +
			"status, nodes (how many), hosts (their names), eligible_time, " +
			"name (or job_name, script, executable, app …), group (or account, project, tag …); --columns maps other names; " +
			"fields between commas, semicolons, tabs or vertical bars",
		sniff: func(head []byte) bool {
			native, table := headerCounts(head)
			return native >= 2 && native >= table
		},
		open: func(r io.Reader, c *TraceConfig) (traces.Stream, error) {
			return csv.NewReader(r, c.File, c.csvOptions())
		},
	},
	{
		Name: formatPhilly, What: "the job table of Microsoft's Philly trace (ATC 2019)",
		KnownBy: "a header with timestamp, duration, num_gpus and cluster",
		Columns: "timestamp (as 2017-10-09 07:01:55), duration (seconds), num_gpus, gpu_time, cluster; any order of rows",
		sniff: func(head []byte) bool {
			native, table := headerCounts(head)
			return table >= 2 && table > native
		},
		open: func(r io.Reader, c *TraceConfig) (traces.Stream, error) { return philly.NewReader(r, c.File) },
	},
}

// Formats returns the trace formats that can be read, the native one first and the others by name.
func Formats() []Format {
	list := slices.Clone(formats)
	rank := func(f Format) string {
		if f.Name == FormatCSV {
			return ""
		}
		return f.Name
	}
	slices.SortFunc(list, func(a, b Format) int { return strings.Compare(rank(a), rank(b)) })
	return list
}

// FormatNames returns the values that TraceConfig.Format takes.
func FormatNames() []string {
	names := []string{FormatAuto}
	for _, f := range Formats() {
		names = append(names, f.Name)
	}
	return names
}

func knownFormat(name string) bool { return slices.Contains(FormatNames(), name) }

// format returns the format called name, nil if there is none.
func format(name string) *Format {
	i := slices.IndexFunc(formats, func(f Format) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	return &formats[i]
}

// sniffed is the size of the beginning of a file by which its format is recognised.
const sniffed = 1 << 16

// sniff returns the format of a file with this beginning, "" if it is unknown. A header with only some columns of the
// native format or of Philly's counts as that format; its reader then names the missing columns.
func sniff(head []byte) string {
	for i := range formats {
		if formats[i].sniff(head) {
			return formats[i].Name
		}
	}
	return ""
}

func sniffSWF(head []byte) bool {
	line := FirstLine(head)
	if len(line) > 0 && line[0] == ';' {
		return true
	}
	f := bytes.Fields(line)
	return len(f) >= 18 && allNumbers(f[:18])
}

// headerCounts returns how many of the required columns of the native format and of Philly's the first line has.
func headerCounts(head []byte) (native, table int) {
	has := map[string]bool{}
	for c := range bytes.SplitSeq(traces.HeaderLine(head), []byte{','}) {
		has[strings.Trim(string(c), " \t\"\r")] = true
	}
	for _, name := range []string{"timestamp", "duration", "num_gpus", "cluster"} {
		if has[name] {
			table++
		}
	}
	return csv.Sniff(head, csv.Options{}), table
}

// FirstLine returns the first line of head that is not blank, without a byte order mark and surrounding blanks.
func FirstLine(head []byte) []byte {
	head = bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))
	end := []byte{'\n'}
	if !bytes.Contains(head, end) { // lines of old spreadsheets end in CR
		end[0] = '\r'
	}
	for len(head) > 0 {
		line, rest, _ := bytes.Cut(head, end)
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return line
		}
		head = rest
	}
	return nil
}

func allNumbers(fields [][]byte) bool {
	for _, f := range fields {
		if _, _, err := traces.Decimal(string(f), 9); err != nil {
			return false
		}
	}
	return true
}

// unknownFormat returns the error for a file of no trace format. It recognises other kinds of files that are published
// with traces.
func unknownFormat(cfg *TraceConfig, head []byte) error {
	file := cfg.File
	line := FirstLine(head)
	switch {
	case len(line) == 0:
		return fmt.Errorf("trace %s: the file is empty", file)
	case sacct.Mistaken(head) != "":
		return fmt.Errorf("trace %s: %s", file, sacct.Mistaken(head))
	case inventory.Sniff(head):
		return fmt.Errorf("trace %s: this is a list of machines or virtual clusters, want a table of jobs", file)
	case bytes.HasPrefix(line, []byte("\xff\xfe")) || bytes.HasPrefix(line, []byte("\xfe\xff")):
		return fmt.Errorf("trace %s: its text is in UTF-16, want UTF-8 (spreadsheets call it CSV UTF-8)", file)
	case besides(head) != "":
		return fmt.Errorf("trace %s: %s", file, besides(head))
	case tiresias.SniffSample(head):
		return fmt.Errorf("trace %s: this is a sample of GPU times for a Gittins index, want a table of jobs", file)
	}
	const most = 60
	shown := string(line)
	if len(shown) > most {
		shown = strings.ToValidUTF8(shown[:most], "") + "…"
	}
	var known []string
	for _, f := range Formats() {
		known = append(known, f.Name)
	}
	if lacks := csv.Lacks(head, cfg.csvOptions()); lacks != "" {
		return fmt.Errorf("trace %s: its first line, %q, is of no known format (gymctl trace formats lists them); %s", file,
			shown, lacks)
	}
	return fmt.Errorf(
		"trace %s: its first line, %q, is of no known format; known are %s (gymctl trace formats tells by what)", file, shown,
		strings.Join(known, ", "))
}
