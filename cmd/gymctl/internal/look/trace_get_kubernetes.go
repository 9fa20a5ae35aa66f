package look

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/options"
	"clustergym/internal/fault"
	"clustergym/internal/plain"
	"clustergym/lab/workload"
	"clustergym/live/kube"
	"clustergym/traces"
	"clustergym/traces/csv"
	kubetrace "clustergym/traces/kube"
)

// kubeOptions are the flags of trace get kubernetes.
type kubeOptions struct {
	options.KubeFlags
	from []string
	out  string
}

func traceGetKubernetes(a *cli.App) *cobra.Command {
	o := &kubeOptions{}
	c := &cobra.Command{
		Use:   "kubernetes",
		Short: "Fetch the history of your own Kubernetes cluster",
		Long: `kubernetes lists the Jobs, pods and Workloads of Kueue that the cluster still knows, and writes those that have run on GPUs
as a trace in the native format. It only reads.

A cluster forgets Jobs soon after they have ended, so a longer history has to be recorded while it happens. --from reads
recordings: what kubectl get jobs,pods -A -o json has printed, with or without --watch, one file or several:

  kubectl get jobs -A -o json --watch > jobs.json &
  kubectl get pods -A -o json --watch > pods.json &

A run time is the time in which a job's pods had nodes. It does not include the wait after an eviction. Jobs that ask for
other resources than those that count as GPUs, such as parts of GPUs, are left out, and the summary says for which.

The file has names of users and jobs.`,
		Example: `  gymctl trace get kubernetes
  gymctl trace get kubernetes --namespace ml --context prod -o history.csv.gz
  gymctl trace get kubernetes --from jobs.json --from pods.json -o history.csv.gz`,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(a, c) },
	}
	f := c.Flags()
	o.Add(f)
	f.StringArrayVar(&o.from, "from", nil, "read this `FILE` of kubectl get -o json, and ask no cluster; can be repeated")
	f.StringVarP(&o.out, "output", "o", "kubernetes-jobs.csv.gz",
		"write to `FILE`, packed if it ends in .gz or .zst; - for standard output")
	f.Bool("json", false, "print one JSON document on what was written")
	cli.Apart(c, []string{"from"}, "kubeconfig", "context", "namespace")
	cli.Filled(c, "output")
	return c
}

func (o *kubeOptions) run(a *cli.App, c *cobra.Command) error {
	if err := checkDocument(c, o.out); err != nil {
		return err
	}
	r, err := kubeJobs(c.Context(), &o.KubeFlags, o.from)
	if err != nil {
		return err
	}
	n := 0
	if err := a.WriteFile(o.out, o.from, func(w io.Writer) error {
		n, err = csv.WriteNamed(w, r, true, true)
		return err
	}); err != nil {
		return err
	}
	if o.out == "-" {
		for _, text := range doubts(r) {
			a.Notef("note: %s", text)
		}
		return nil
	}
	if cli.AsJSON(c) {
		skipped := []workload.Skip{}
		for _, s := range r.Skipped() {
			skipped = append(skipped, workload.Skip(s))
		}
		return a.JSON(struct {
			writtenTrace
			Skipped []workload.Skip `json:"skipped"`
			Notes   []string        `json:"notes,omitempty"`
		}{writtenTrace{o.out, workload.FormatCSV, n}, skipped, doubts(r)})
	}
	a.Printf("%s: %s\n", o.out, plain.Count(n, "job", "jobs"))
	for _, s := range r.Skipped() {
		a.Printf("  left out  %d: %s\n", s.Count, s.Reason)
	}
	for _, text := range doubts(r) {
		a.Printf("  note      %s\n", text)
	}
	a.Printf("  try       gymctl trace stats %s\n", cli.ShellWords(o.out))
	if n == 0 && len(r.Others()) == 0 {
		a.Notef("note: there is no job that has run on GPUs and ended; record for a while with kubectl get --watch, and " +
			"read that with --from")
	}
	return nil
}

// doubts says what is not known of jobs in a trace.
func doubts(r *kubetrace.Reader) (list []string) {
	if n := r.Evicted(); n > 0 {
		list = append(list,
			plain.Count(n, "job was",
				"jobs were")+
				" evicted and admitted again, and nothing tells of all earlier runs: the run time counts those that are known")
	}
	for _, x := range r.Parts() {
		list = append(list,
			fmt.Sprintf("%s for %s, too; each of the GPUs counts as a whole one",
				plain.Count(x.Jobs, "job with GPUs asks", "jobs with GPUs ask"), x.String()))
	}
	return list
}

// kubeJobs reads recordings, or lists what the cluster knows.
func kubeJobs(ctx context.Context, k *options.KubeFlags, from []string) (*kubetrace.Reader, error) {
	as := kubetrace.Default()
	if k.Gpus != nil {
		as.GPUs = k.Gpus
	}
	if from == nil {
		cfg, err := k.Find()
		if err != nil {
			return nil, err
		}
		c, err := kube.Open(cfg)
		if err != nil {
			return nil, fault.Mistakef("%w", err)
		}
		defer c.Close() //nolint:errcheck // nothing is written
		o, err := c.History(ctx)
		if err != nil {
			return nil, err
		}
		return o.Trace(as), nil
	}
	var all []io.Reader
	for _, name := range from {
		f, err := (*traces.Files)(nil).Open(ctx, name)
		if err != nil {
			return nil, options.FileMistake(name, err)
		}
		defer f.Close() //nolint:errcheck // only read
		all = append(all, f)
	}
	return kubetrace.NewReader(io.MultiReader(all...), strings.Join(from, ", "), as)
}
