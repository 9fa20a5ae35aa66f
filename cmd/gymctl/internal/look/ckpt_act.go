package look

import (
	"os"

	"github.com/spf13/cobra"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/lab/actor"
)

// CkptAct is gymctl ckpt act.
func CkptAct(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "act DIR",
		Short: "Answer observations on standard input with a checkpoint's actions",
		Long: `act lets other programs play a checkpoint: it reads observations from standard input and writes the actions that eval
would take. The Python package does so in clustergym.load. DIR is a run directory (its best checkpoint, else its newest)
or a checkpoint.

The first line of the output is JSON: the environment, the fields of an observation with their shapes, the sizes of an
action's discrete factors and the bounds of its numbers. Then each request gets one reply. Numbers are little-endian,
and arrays are stored row by row:

  request  uint32 n, float32 observations [n], uint8 masks [n], 1 = legal
  reply    uint32 n, int32 indices [n], float32 numbers [n]
  refusal  uint32 0, uint32 length, text

act ends when its input ends.`,
		Example:           `  gymctl ckpt act runs/mine`,
		Args:              cli.Args(1, 1, "one DIR"),
		ValidArgsFunction: cli.OnlyFolders,
		RunE: func(c *cobra.Command, dirs []string) error {
			answers, err := actor.New(dirs[0])
			if err != nil {
				return err
			}
			// A read of standard input cannot be cancelled, so an interrupt does not wait for it.
			ctx, ended := c.Context(), make(chan error, 1)
			go func() { ended <- answers.Serve(ctx, os.Stdin, a.Stdout) }()
			select {
			case err := <-ended:
				return err
			case <-ctx.Done():
				return ctx.Err()
			}
		},
	}
}
