package look

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/internal/fault"
	"clustergym/lab/arena"
	"clustergym/lab/modelcard"
)

// mostBatch is the largest number of rows of --batch.
const mostBatch = 1 << 16

func ckptExport(a *cli.App) *cobra.Command {
	var out, card string
	var batch int
	c := &cobra.Command{
		Use:   "export DIR",
		Short: "Write a checkpoint's policy as an ONNX model, and a model card",
		Long: `export writes the greedy policy of a checkpoint as an ONNX model (opset 17), which other programs can play: what scales
observations, the network, the mask of legal actions and the rule that chooses are all inside. DIR is a run directory
(its best checkpoint, else its newest) or a checkpoint.

Inputs are obs, the observation as one vector, and action_mask, the legal actions; outputs are action, logits (q for
ddqn) and value. With --batch they have that many rows, otherwise any number. docs/reference/onnx.md has them all, and how to load
the model in Python.

--card writes a page in Markdown beside it, or alone: what the model is, what it was trained on and how much, what it
knew of run times, how it did against its rivals as far as the run's folder has it, and how to load it.

gymctl eval --policy-onnx plays the model again.`,
		Example: `  gymctl ckpt export runs/mine -o policy.onnx
  gymctl ckpt export runs/mine/checkpoints/50000 -o policy.onnx --batch 1 --card MODEL.md`,
		Args:              cli.Args(1, 1, "one DIR"),
		ValidArgsFunction: cli.OnlyFolders,
		RunE: func(c *cobra.Command, dirs []string) error {
			switch {
			case c.Flags().Changed("batch") && (batch < 1 || batch > mostBatch):
				return fault.Mistakef("--batch: got %d, want 1 to %d rows", batch, mostBatch)
			case out != "" && card != "" && filepath.Clean(out) == filepath.Clean(card):
				return fault.Mistakef("--card: got %q, which is the file of -o; want another name", card)
			}
			v := cli.About()
			e, err := arena.Export(dirs[0], batch, v.Commit)
			if err != nil {
				return err
			}
			model := e.Model.Encode()
			if out != "" {
				if err := a.WriteBytes(out, model); err != nil {
					return err
				}
			}
			if card == "" {
				return nil
			}
			text, err := modelcard.New(e, modelcard.File{Name: filepath.Base(out), Bytes: len(model)}, v.Version, v.Commit)
			if err != nil {
				return err
			}
			return a.WriteBytes(card, []byte(text))
		},
	}
	f := c.Flags()
	f.StringVarP(&out, "output", "o", "", "write the model to `FILE`; - = standard output")
	f.IntVar(&batch, "batch", 0, "inputs of exactly `N` rows; without it, of any number")
	f.StringVar(&card, "card", "", "write a model card in Markdown to `FILE`")
	c.MarkFlagsOneRequired("output", "card")
	cli.Filled(c, "output", "card")
	return c
}
