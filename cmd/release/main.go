// Command release builds everything that is given to people without Go: gymctl for each platform, wheels of the Python
// package with it inside, archives, manual pages, completions, bills of materials and what a container is made of. It
// only writes files; nothing is published. Equal sources and an equal release of Go give equal bytes, on any machine.
//
//	go run ./cmd/release build --base clustergym-0.1.0-py3-none-any.whl --out dist
//	go run ./cmd/release check dist
//
// make wheels and make release call it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
)

const usage = `usage:
  release build [--out DIR] [--base WHEEL] [--only wheels|archives] [--targets OS/ARCH,...] [--dirty]
  release check DIR
  release targets`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := execute(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// execute carries out args. It writes a line about each file to out.
func execute(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	switch verb := args[0]; verb {
	case "build":
		b := builder{root: ".", out: out}
		targets, only := "", ""
		f := flag.NewFlagSet(verb, flag.ContinueOnError)
		f.SetOutput(io.Discard)
		f.StringVar(&b.dir, "out", "dist", "")
		f.StringVar(&b.base, "base", "", "")
		f.StringVar(&only, "only", "", "")
		f.StringVar(&targets, "targets", "", "")
		f.BoolVar(&b.dirty, "dirty", false, "")
		if err := f.Parse(args[1:]); err != nil || f.NArg() > 0 {
			return errors.Join(err, errors.New(usage))
		}
		b.wheels, b.archives = only != "archives", only != "wheels"
		switch {
		case only != "" && only != "wheels" && only != "archives":
			return fmt.Errorf("--only: got %q, want wheels or archives", only)
		case b.wheels && b.base == "":
			return errors.New("--base: want the wheel of the Python package without gymctl, which make wheels builds")
		}
		var err error
		if b.targets, err = parseTargets(targets); err != nil {
			return err
		}
		return b.build(ctx)
	case "check":
		if len(args) != 2 {
			return errors.New(usage)
		}
		return checkDir(ctx, args[1], out)
	case "targets":
		for _, t := range targets {
			fmt.Fprintf(out, "%s/%s\n", t.os, t.arch)
		}
		return nil
	default:
		return fmt.Errorf("unknown verb %q\n%s", verb, usage)
	}
}

// parseTargets reads OS/ARCH, parted by commas; an empty list names all.
func parseTargets(list string) ([]target, error) {
	if list == "" {
		return targets, nil
	}
	var all []target
	for name := range strings.SplitSeq(list, ",") {
		t, err := findTarget(name)
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}
