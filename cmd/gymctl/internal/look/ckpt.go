package look

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"clustergym/agents/checkpoint"
	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/options"
	"clustergym/internal/fault"
)

func ckptVerb(a *cli.App) *cobra.Command {
	c := cli.Parent(&cobra.Command{
		Use:   "ckpt",
		Short: "Inspect, verify and export checkpoints",
		Long: `ckpt inspects what training saves. DIR is one checkpoint, a folder of checkpoints, or a run directory, whose
checkpoints are in its folder checkpoints.`,
		Example: `  gymctl ckpt show --help
  gymctl ckpt verify --help`,
	})
	c.AddCommand(ckptShow(a), ckptVerify(a), CkptAct(a), ckptExport(a))
	return c
}

func ckptShow(a *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "show DIR",
		Short: "Print what a checkpoint is for and what it holds",
		Long: `show prints the purpose and the step of every checkpoint under DIR, and the parts if there is only one, after
comparing all sizes and hashes.`,
		Example: `  gymctl ckpt show runs/mine
  gymctl ckpt show runs/mine/checkpoints/50000 --json`,
		Args:              cli.Args(1, 1, "one DIR"),
		ValidArgsFunction: cli.OnlyFolders,
		RunE: func(c *cobra.Command, dirs []string) error {
			found, err := findCheckpoints(dirs[0])
			if err != nil {
				return err
			}
			all := make([]CkptInfo, 0, len(found))
			for _, dir := range found {
				m, err := checkpoint.Verify(dir)
				if err != nil {
					return err
				}
				all = append(all, CkptInfo{Dir: dir, Manifest: m})
			}
			return a.Show(c, cli.Keyed{"checkpoints": all}, func(io.Writer) error { return showCheckpoints(a, all) })
		},
	}
	cli.JSONFlag(c)
	return c
}

// CkptInfo is one checkpoint in the JSON document of ckpt show.
type CkptInfo struct {
	Dir string `json:"dir"`
	*checkpoint.Manifest
}

func showCheckpoints(a *cli.App, all []CkptInfo) error {
	var rows [][]string
	for _, k := range all {
		rows = append(rows, []string{k.Dir, k.Meta.Env, k.Meta.Agent, strconv.FormatInt(k.Meta.Step, 10),
			strconv.FormatUint(k.Meta.Seed, 10), k.Meta.Kernels, strconv.FormatInt(bytesOf(k.Manifest), 10)})
	}
	if err := a.Table(3, []string{"checkpoint", "environment", "agent", "step", "seed", "kernels", "bytes"}, rows,
		"kernels", "seed", "bytes"); err != nil {
		return err
	}
	if len(all) != 1 {
		return nil
	}
	rows = nil
	for _, p := range all[0].Parts {
		rows = append(rows, []string{p.Name, strconv.FormatInt(p.Size, 10), p.SHA256})
	}
	a.Printf("\n")
	return a.Table(1, []string{"part", "bytes", "sha256"}, rows, "bytes")
}

// CkptVerified is one checkpoint in the JSON document of ckpt verify.
type CkptVerified struct {
	Dir   string `json:"dir"`
	OK    bool   `json:"ok"`
	Step  int64  `json:"step"`
	Parts int    `json:"parts"`
	Bytes int64  `json:"bytes"`
	Fault string `json:"fault,omitempty"` // the sentence for people
}

func ckptVerify(a *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "verify DIR",
		Short: "Compare every file of a checkpoint with its hash",
		Long: `verify reads every file of every checkpoint under DIR and compares its size and SHA-256 with the manifest. It
ends with exit code 2 at the first file that is missing, truncated or changed.`,
		Example: `  gymctl ckpt verify runs/mine
  gymctl ckpt verify runs/mine --json`,
		Args:              cli.Args(1, 1, "one DIR"),
		ValidArgsFunction: cli.OnlyFolders,
		RunE: func(c *cobra.Command, dirs []string) error {
			found, err := findCheckpoints(dirs[0])
			if err != nil {
				return err
			}
			verified := make([]CkptVerified, 0, len(found))
			for _, dir := range found {
				var m *checkpoint.Manifest
				if m, err = checkpoint.Verify(dir); err != nil {
					verified = append(verified, CkptVerified{Dir: dir, Fault: err.Error()})
					break
				}
				v := CkptVerified{Dir: dir, OK: true, Step: m.Meta.Step, Parts: len(m.Parts), Bytes: bytesOf(m)}
				verified = append(verified, v)
				if !cli.AsJSON(c) {
					a.Printf("%s: ok, step %d, %d parts\n", dir, v.Step, v.Parts)
				}
			}
			if cli.AsJSON(c) {
				err = errors.Join(a.JSON(cli.Keyed{"checkpoints": verified}), err)
			}
			return err
		},
	}
	c.Flags().Bool("json", false, "print one JSON document, in which the damaged checkpoint is the last")
	return c
}

// bytesOf is the size of all parts.
func bytesOf(m *checkpoint.Manifest) (n int64) {
	for _, p := range m.Parts {
		n += p.Size
	}
	return n
}

// findCheckpoints lists the checkpoints in dir: dir itself, those directly in it, or those in its folder checkpoints.
func findCheckpoints(dir string) ([]string, error) {
	st, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Mistakef("checkpoint %s: there is no such folder", dir)
	} else if err != nil {
		return nil, options.FileMistake(dir, err)
	} else if !st.IsDir() {
		return nil, fault.Mistakef("checkpoint %s: this is a file, a folder is wanted", dir)
	}
	if _, err := os.Stat(filepath.Join(dir, checkpoint.ManifestName)); err == nil {
		return []string{dir}, nil
	}
	for _, root := range []string{dir, filepath.Join(dir, "checkpoints")} {
		steps, err := checkpoint.List(root)
		if err != nil {
			return nil, options.FileMistake(root, err)
		}
		if len(steps) > 0 {
			var dirs []string
			for _, s := range steps {
				dirs = append(dirs, checkpoint.Dir(root, s))
			}
			return dirs, nil
		}
	}
	return nil,
		fault.Mistakef("checkpoint %s: there is no %s in it and no checkpoint below it, so nothing here was saved to its end",
			dir, checkpoint.ManifestName)
}
