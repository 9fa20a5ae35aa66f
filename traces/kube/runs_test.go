package kube

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"clustergym/traces"
)

// Objects of one day, with times as 15:04:05.

func stamp(at string) string {
	if at == "" {
		return "null"
	}
	return fmt.Sprintf("%q", "2026-03-01T"+at+"Z")
}

func cond(kind, status, at string) string {
	return fmt.Sprintf(`{"type": %q, "status": %q, "reason": "Succeeded", "lastTransitionTime": %s}`, kind, status,
		stamp(at))
}

// aPod is a pod of the Job j. more is further JSON of its status.
func aPod(uid, start, phase, end, more string) string {
	state := `{"running": {}}`
	if end != "" {
		state = fmt.Sprintf(`{"terminated": {"finishedAt": %s}}`, stamp(end))
	}
	return fmt.Sprintf(`{"kind": "Pod", "metadata": {"name": "j-%[1]s", "namespace": "ml", "uid": %[1]q, "resourceVersion": "1", "creationTimestamp": %[2]s, "ownerReferences": [{"kind": "Job", "name": "j", "uid": "job-j", "controller": true}]},
		"spec": {"nodeName": "n", "containers": [{"resources": {"limits": {"nvidia.com/gpu": "4"}}}]},
		"status": {"phase": %[3]q, "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": %[2]s}], "containerStatuses": [{"state": %[4]s}] %[5]s}}`, uid, stamp(start), phase, state, more)
}

func aJob(version int, gang int, start, end string, conditions ...string) string {
	if end != "" {
		conditions = append(conditions, cond("Complete", "True", end))
	}
	return fmt.Sprintf(`{"kind": "Job", "metadata": {"name": "j", "namespace": "ml", "uid": "job-j", "resourceVersion": "%d", "creationTimestamp": "2026-03-01T09:59:00Z"},
		"spec": {"parallelism": %d, "completions": %[2]d, "template": {"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "4"}}}]}}}, "status": {"startTime": %s, "completionTime": %s, "conditions": [%s]}}`,
		version, gang, stamp(start), stamp(end), strings.Join(conditions, ","))
}

// aWorkload is one of owner; of a RayJob if that is no Job here.
func aWorkload(version int, owner, more string, conditions ...string) string {
	return fmt.Sprintf(`{"kind": "Workload", "metadata": {"name": "w", "namespace": "ml", "uid": "w", "resourceVersion": "%d", "creationTimestamp": "2026-03-01T09:59:00Z", "ownerReferences": [{"kind": "X", "name": "x", "uid": %q, "controller": true}]},
		"spec": {"podSets": [{"count": 2, "template": {"spec": {"containers": [{"resources": {"requests": {"nvidia.com/gpu": "4"}}}]}}}]}, "status": {"conditions": [%s] %s}}`, version, owner, strings.Join(conditions, ","), more)
}

func event(kind, object string) string {
	return fmt.Sprintf(`{"type": %q, "object": %s}`, kind, object)
}

// What a job waits after an eviction is no run time, whichever objects tell of it and in which order; where nothing
// does, the job is counted.
func TestWaitsAreNoRunTime(t *testing.T) {
	first, second := aPod("p1", "10:00:10", "Failed", "10:10:10", ""), aPod("p2", "12:00:00", "Succeeded", "12:30:00", "")
	dies := aPod("p1", "10:00:10", "Running", "", "")
	done := aJob(9, 1, "12:00:00", "12:30:00")
	suspended := aJob(5, 1, "", "", cond("Suspended", "True", "10:10:10"))
	running := aJob(3, 1, "10:00:10", "")
	finished := cond("Finished", "True", "12:30:00")
	again := cond("Admitted", "True", "12:00:00")
	for name, x := range map[string]struct {
		objects []string
		seconds int
		unknown int
	}{
		"two pods":                          {[]string{first, second, done}, 2400, 0},
		"two pods, their Job had one start": {[]string{first, second, aJob(9, 1, "10:00:00", "12:30:00")}, 2400, 0},
		"a list of them": {[]string{`{"kind": "List", "items": [` + first + "," + second + "," + done +
			`]}`}, 2400, 0},
		"disrupted, and never seen to end": {[]string{
			aPod("p1", "10:00:10", "Running", "",
				`, "conditions": [`+cond("PodScheduled", "True", "10:00:10")+","+cond("DisruptionTarget", "True", "10:10:10")+`]`),
			second, done}, 2400, 0},
		"failed without containers": {[]string{
			aPod("p1", "10:00:10", "Failed", "",
				`, "conditions": [`+cond("PodScheduled", "True", "10:00:10")+","+cond("Ready", "False", "10:10:10")+`]`), second,
			done}, 2400, 0},
		"deleted while it ran": {[]string{event("ADDED", dies), event("DELETED", dies),
			event("ADDED", second), event("MODIFIED", done)}, 1800, 1},
		"gone while it ran":                  {[]string{dies, second, done}, 1800, 1},
		"deleted, and no other pod is seen":  {[]string{event("DELETED", dies), done}, 1800, 1},
		"gone, and its Job was suspended":    {[]string{dies, running, suspended, second, done}, 2400, 0},
		"no pods, and its Job was suspended": {[]string{running, suspended, done}, 2400, 0},
		"no pods, and the Job began twice":   {[]string{running, done}, 1800, 1},
		"only the second pod":                {[]string{second, done}, 1800, 0},
		"only the second pod, and a Workload": {[]string{second, done,
			aWorkload(1, "job-j", `, "requeueState": {"count": 1}`, again, finished)}, 1800, 1},
		"a Workload's states": {[]string{aWorkload(1, "job-j", "", cond("Admitted", "True", "10:00:10")),
			aWorkload(2, "job-j", "", cond("Admitted", "False", "10:10:10"), cond("Evicted", "True", "10:10:10")),
			aWorkload(3, "job-j", "", again, cond("Evicted", "False", "12:00:00"), finished), done}, 2400, 0},
		"a Workload's states, and later pods": {[]string{aWorkload(1, "job-j", "", cond("Admitted", "True", "10:00:10")),
			aWorkload(2, "job-j", "", cond("Evicted", "True", "10:10:10")), aWorkload(3, "job-j", "", again, finished), second,
			done}, 2400, 0},
		"nobody's Workload, last state": {[]string{
			aWorkload(5, "ray", `, "requeueState": {"count": 1}`, cond("QuotaReserved", "True", "12:00:00"), again,
				cond("Evicted", "False", "12:00:00"), finished)}, 1800, 1},
		"nobody's Workload, evictions counted": {[]string{
			aWorkload(5, "ray", `, "schedulingStats": {"evictions": [{"reason": "Preempted", "count": 2}]}`, again, finished)},
			1800, 1},
		"nobody's Workload, all states": {[]string{
			aWorkload(1, "ray", "", cond("QuotaReserved", "True", "09:59:30"), cond("Admitted", "True", "10:00:10")),
			aWorkload(2, "ray", "", cond("Admitted", "False", "10:10:10"), cond("Evicted", "True", "10:10:10")),
			aWorkload(5, "ray", `, "requeueState": {"count": 1}`, again, finished)}, 2400, 0},
		"several conditions of one kind": {[]string{aWorkload(5, "ray", "", cond("Admitted", "True", "10:00:10"),
			cond("Evicted", "True", "10:10:10"), again, finished)}, 2400, 0},
		"it tells how long it was admitted": {[]string{aWorkload(5, "ray", `, "accumulatedPastExexcutionTimeSeconds": 600`,
			cond("Evicted", "False", "12:00:00"), again, finished)}, 2400, 0},
		"never evicted": {[]string{aWorkload(5, "ray", "", again, finished)}, 1800, 0},
		"a quota, and no checks": {[]string{aWorkload(5, "ray", "", cond("QuotaReserved", "True", "12:00:00"),
			finished)}, 1800, 0},
		"waits for a check": {[]string{aWorkload(4, "ray", "", cond("QuotaReserved", "True", "10:00:00")),
			aWorkload(5, "ray", "", cond("QuotaReserved", "True", "10:00:00"), again, finished)}, 1800, 0},
		"a gang": {[]string{first, aPod("p1b", "10:01:10", "Failed", "10:09:10", ""), second,
			aPod("p2b", "12:01:00", "Succeeded", "12:29:00", ""), aJob(9, 2, "12:00:00", "12:30:00")}, 2400, 0},
		"one of a gang is replaced": {[]string{aPod("a", "10:00:00", "Failed", "10:30:00", ""),
			aPod("b", "10:00:00", "Succeeded", "11:00:00", ""), aPod("c", "10:35:00", "Succeeded", "11:00:00", ""),
			aJob(9, 2, "10:00:00", "11:00:00")}, 3600, 0},
		"still running when last seen": {[]string{aPod("a", "10:00:00", "Running", "", ""),
			aPod("b", "10:01:00", "Running", "", ""), aJob(9, 2, "10:00:00", "11:00:00")}, 3600, 0},
		"tried again": {[]string{aPod("a", "10:00:00", "Failed", "10:05:00", ""),
			aPod("b", "10:05:10", "Succeeded", "10:35:10", ""), aJob(9, 1, "10:00:00", "10:35:10")}, 2100, 0},
		"three times": {[]string{aPod("a", "00:00:00", "Failed", "00:10:00", ""),
			aPod("b", "06:00:00", "Failed", "06:10:00", ""), aPod("c", "12:00:00", "Failed", "12:10:00", ""),
			aPod("d", "18:00:00", "Succeeded", "18:40:00", ""), aJob(9, 1, "18:00:00", "18:40:00")}, 4200, 0},
		"a pod that never had a node": {[]string{
			strings.Replace(aPod("a", "10:00:00", "Failed", "", ""), `"nodeName": "n",`, "", 1), second, done}, 1800, 0},
		"given up long after it was evicted": {[]string{first,
			strings.Replace(aJob(9, 1, "", "", cond("Failed", "True", "14:00:00")), `"status": {`, `"status": {"failed": 1, `,
				1)}, 600, 0},
		"a node's clock is late": {[]string{aPod("a", "12:00:00", "Succeeded", "12:30:20", ""), done}, 1800, 0},
	} {
		for seed := range uint64(4) {
			objects := slices.Clone(x.objects)
			if seed > 0 {
				rand.New(rand.NewPCG(seed, 1)).Shuffle(len(objects),
					func(i, k int) { objects[i], objects[k] = objects[k], objects[i] })
			}
			r, jobs := read(t, strings.Join(objects, "\n"))
			if len(jobs) != 1 || jobs[0].Work != time.Duration(x.seconds)*time.Second || r.Evicted() != x.unknown {
				t.Errorf("%s, order %d: %+v, %d of unknown run time, %v left out; want %d s, %d", name, seed, jobs, r.Evicted(),
					r.Skipped(), x.seconds, x.unknown)
			}
		}
	}
}

// Pods of a gang that were replaced are neither GPUs of it nor its run time.
func TestAGangOfPodsThatWasEvicted(t *testing.T) {
	pod := func(uid, start, phase, end string) string {
		p := strings.Replace(aPod(uid, start, phase, end, ""),
			`"ownerReferences": [{"kind": "Job", "name": "j", "uid": "job-j", "controller": true}]`,
			`"labels": {"kueue.x-k8s.io/pod-group-name": "g"}, "annotations": {"kueue.x-k8s.io/pod-group-total-count": "2"}`, 1)
		return p
	}
	r, jobs := read(t,
		pod("a", "10:00:00", "Failed",
			"10:10:00")+pod("b", "10:00:00", "Failed", "10:10:00")+pod("c", "12:00:00", "Succeeded", "12:30:00")+pod("d",
			"12:00:00", "Succeeded", "12:30:00"))
	if len(jobs) != 1 || jobs[0].GPUs != 8 || jobs[0].Work != 2400*time.Second || jobs[0].Status != traces.Completed ||
		r.Evicted() != 0 {
		t.Errorf("%+v, %v", jobs, r.Skipped())
	}
}

// What is asked for in place of GPUs is said, with the way to count it.
func TestWhatIsAskedForIsSaid(t *testing.T) {
	job := func(spec, meta string) string {
		return fmt.Sprintf(`{"kind": "Job", "metadata": {"name": "j", "namespace": "ml", "uid": "u", "creationTimestamp": "2026-03-01T10:00:00Z"}, "spec": {"parallelism": 2, "template": {"metadata": {%s}, "spec": {%s}}},
			"status": {"startTime": "2026-03-01T10:00:00Z", "completionTime": "2026-03-01T10:30:00Z", "conditions": [{"type": "Complete", "status": "True"}]}}`, meta, spec)
	}
	of := func(name, n string) string {
		return fmt.Sprintf(`"containers": [{"resources": {"requests": {"cpu": "4", %q: %q}, "limits": {%[1]q: %[2]q}}}]`,
			name, n)
	}
	for name := range map[string]bool{
		"nvidia.com/mig-1g.5gb": true, "nvidia.com/gpu.shared": true, "gpu.intel.com/i915": true, "gpu.intel.com/xe": true,
		"habana.ai/gaudi": true, "google.com/tpu": true, "aws.amazon.com/neuron": true, "huawei.com/Ascend910": true,
		"volcano.sh/vgpu-number": true, "aliyun.com/gpu-mem": true, "cambricon.com/mlu": true, "example.com/what": true,
	} {
		r, jobs := read(t, job(of(name, "3"), ""))
		want := fmt.Sprintf("[{no GPUs that count: it asks for %s (6 in all); --gpu-resource %[1]s counts each as a GPU 1}]",
			name)
		if got := fmt.Sprint(r.Skipped()); got != want || len(jobs) > 0 || len(r.Others()) != 1 {
			t.Errorf("%s: %v, want %s", name, got, want)
		}
		as := Default()
		as.GPUs = []string{name}
		counted, err := NewReader(strings.NewReader(job(of(name, "3"), "")), "f", as)
		if err != nil {
			t.Fatal(err)
		}
		if all, err := traces.ReadAll(counted); err != nil || len(all) != 1 || all[0].GPUs != 6 {
			t.Errorf("%s: %+v, %v", name, all, err)
		}
	}
	for text, want := range map[string]string{
		job(`"containers": [{}]`,
			`"annotations": {"gpu-fraction": "0.5"}`): "it asks for annotation gpu-fraction (1 in all); only resources can be counted",
		job(`"containers": [{}]`,
			`"annotations": {"gpu-memory": "2000"}`): "annotation gpu-memory (4000 in all)",
		job(`"containers": [{"resources": {"claims": [{"name": "g"}]}}], "resourceClaims": [{"name": "g", "resourceClaimTemplateName": "one-gpu"}]`, ""): "it asks for resource claim one-gpu (2 in all); only resources",
		job(of("volcano.sh/vgpu-number", "1")[:len(of("volcano.sh/vgpu-number", "1"))-4]+
			`, "volcano.sh/vgpu-memory": 3000}}}]`,
			""): "it asks for volcano.sh/vgpu-memory (6000 in all), volcano.sh/vgpu-number (2 in all); --gpu-resource volcano.sh/vgpu-memory",
		job(of("rdma/hca", "1"), ""):              NoGPUs,
		job(of("hugepages-2Mi", "1Gi"), ""):       NoGPUs,
		job(of("nvidia.com/migESC[2J", "1"), ""):  "",
		job(of("nvidia.com/mig-1g.5gb", "0"), ""): NoGPUs,
	} {
		text = strings.ReplaceAll(text, "ESC", `\u001b`)
		r, _ := read(t, text)
		if got := fmt.Sprint(r.Skipped()); !strings.Contains(got, want) || strings.Contains(got, "\x1b") ||
			!strings.Contains(got, " 1}") {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	r, jobs := read(t, job(`"containers": [{"resources": {"limits": {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 3000}}}]`, ""))
	if len(jobs) != 1 || len(r.Parts()) != 1 || r.Parts()[0].String() != "nvidia.com/gpumem (6000 in all)" {
		t.Errorf("%+v, %+v", jobs, r.Parts())
	}
}
