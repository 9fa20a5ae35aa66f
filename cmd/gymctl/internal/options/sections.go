package options

import (
	"github.com/spf13/cobra"

	"clustergym/cmd/gymctl/internal/cli"
)

// sections are the sections of the help of verbs with many flags, first what everybody uses.
var sections = []struct {
	title string
	flags []string
}{
	{"Policies", []string{
		"agent", "checkpoint", "policy", "policies", "policy-file", "policy-onnx", "name", "file", "hold", "index",
		"budget", "budget-time",
		"advise", "rungs",
	}},
	{"Workload and cluster", []string{
		"trace", "format", "columns", "delimiter", "sort", "skip", "jobs", "limit", "accept-left-out",
		"profiles", "reference", "mix", "history", "history-end",
		"cluster", "slurm-conf", "ssh", "site-factor", "kubeconfig", "context", "namespace", "gpu-resource",
		"tolerated-taint", "estimates", "data",
		"trace-root", "own-files",
	}},
	{"Configuration", []string{"config", "env", "set", "settings", "seed", "seeds", "tasks", "quick", "only"}},
	{"Comparison", []string{"windows", "episodes", "no-whole", "no-eval", "split", "secret", "references", "leaderboard",
		"replay"}},
	{"Demo", demoFlags},
	{"What if", []string{"add", "drain", "submit"}},
	{"Forecast", []string{"scheduler", "placement", "arrivals", "draws", "alike", "horizon", "recalibrate", "interval"}},
	{"Looks", []string{"every", "looks", "timeout", "top"}},
	{"Folders and output", []string{
		"run-dir", "resume", "continue", "dir", "out", "output", "json", "html", "log", "ui", "ui-token-file", "tags",
		"mlflow", "mlflow-experiment",
	}},
	{"Clients", []string{
		"addr", "serve", "external", "external-timeout", "check", "check-env", "ca", "until-eof", "max-sessions",
		"max-handles", "max-envs", "max-inflight",
		"max-frame-in", "max-frame-out", "hello-timeout", "idle-timeout", "resume-window", "step-timeout", "drain-timeout",
		"ping-interval", "client-ca",
		"allow-origin", "insecure", "log-level",
	}},
	{"Workers on other machines", []string{
		"listen", "queue", "job", "token-file", "tls-cert", "tls-key", "tls-ca", "tries", "ack-wait", "save-every",
	}},
	{"One training in several processes", []string{"rank", "world", "rendezvous", "ranks", "rank-timeout", "rank-wait"}},
	{"This machine", []string{"workers", "kernels", "memory", "shared-memory"}},
}

// Sections divides the flags of c into the sections of all verbs.
func Sections(c *cobra.Command) {
	for _, s := range sections {
		cli.Section(c, s.title, s.flags...)
	}
}
