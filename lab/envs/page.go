package envs

import (
	"fmt"
	"strings"

	"clustergym/simulator/policyname"
)

// page returns the environment's own page, with the sections that follow from its descriptor before its versions:
// arguments, workload and rivals.
func (d *Descriptor) page(args *Args, info *Info) string {
	own := d.Page(args.Settings, info.Spec)
	before, after, ok := strings.Cut(own, "\n## Versions\n")
	more := d.argumentSection(info.Kwargs) + d.workloadSection(info.Kwargs) + d.rivalSection()
	if !ok {
		return own + more
	}
	return strings.TrimRight(before, "\n") + "\n" + more + "\n## Versions\n" + after
}

// cell returns text for a cell of a Markdown table.
func cell(text string) string { return strings.ReplaceAll(text, "|", "/") }

func kwargTable(b *strings.Builder, kwargs []Kwarg, workload bool) {
	b.WriteString("| key | here | values | meaning |\n|---|---|---|---|\n")
	for _, k := range kwargs {
		if k.workload != workload {
			continue
		}
		here := fmt.Sprint(k.Default)
		switch {
		case here == "":
			here = `""`
		case k.Type == "map":
			here = "{}"
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", k.Name, here, cell(k.Want), cell(k.Doc))
	}
}

// argumentSection lists the settings.
func (d *Descriptor) argumentSection(kwargs []Kwarg) string {
	if len(kwargs) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n## Arguments\n\n")
	b.WriteString("Keys of env in a run's configuration (gymctl train --env " + d.ID +
		" --set env.KEY=VALUE), arguments of gymctl serve's\nclients.\n\n")
	kwargTable(&b, kwargs, false)
	return b.String()
}

// workloadSection describes the workload.
func (d *Descriptor) workloadSection(kwargs []Kwarg) string {
	if d.Takes.Trace() == "" {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n## Workload, cluster and part\n\n")
	fmt.Fprintf(&b, "--trace takes %s. ", d.Takes.Trace())
	if d.Takes.Cluster {
		b.WriteString("--cluster names the hardware. ")
	} else {
		b.WriteString("There is no --cluster. ")
	}
	b.WriteString(
		"Without a trace,\nepisodes are generated. Where several environments have the same workload, they share it.\n\n")
	kwargTable(&b, kwargs, true)
	if d.Simulated() {
		b.WriteString(
			"\nWith --trace or --cluster, gymctl train and eval choose the sizes among max_gpus, window and warm that are not " +
				"given;\ngymctl serve's clients get the ones they ask for, or those above.\n")
	}
	return b.String()
}

// rivalSection lists the policies of the comparison at the end.
func (d *Descriptor) rivalSection() string {
	if !d.Scheduling() {
		return ""
	}
	var b strings.Builder
	better := "less"
	if d.Metric.Higher {
		better = "more"
	}
	fmt.Fprintf(&b, "\n## Comparison\n\nWhat counts is %s: %s is better. ", d.Metric.Title, better)
	if d.Preset != "" {
		fmt.Fprintf(&b, "The preset %s trains an agent. ", d.Preset)
	}
	b.WriteString("Agents are compared with\n\n")
	fmt.Fprintf(&b, "    %s\n\n", strings.Join(d.Rivals, " "))
	if len(d.StopRivals) > 0 {
		fmt.Fprintf(&b, "and where actions can stop running jobs with\n\n    %s\n\n", strings.Join(d.StopRivals, " "))
	}
	switch {
	case d.Simulated():
		b.WriteString(
			"ORDER+ADMISSION is a scheduler over the whole queue (docs/reference/schedulers.md) on the same windows.")
	case len(d.Planners) > 0:
		b.WriteString("A name of one word is a planner that sees the whole graph at once.")
	}
	b.WriteString(" " + policyname.RuleForm + " acts through the\naction space:\n\n| rule | what it does |\n|---|---|\n")
	for _, r := range d.Rules {
		fmt.Fprintf(&b, "| %s | %s |\n", r.Name, cell(r.About))
	}
	return b.String()
}
