package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// place answers a newcomer's question: a declaration ("Name" or "Type.Method") of a package.
type place struct {
	question, pkg, name string
}

// places are the questions with which people open this code. docs/design/map.md has them with links to the files, which
// TestMaps finds by the declarations, so that a file may be renamed and a declaration may move within its package.
var places = []place{
	{"a cluster's text such as `4x8:v100` is parsed", "simulator/cluster", "Parse"},
	{"`--trace` becomes jobs", "lab/workload", "OpenTrace"},
	{"the configuration file is decoded and checked", "lab/config", "Decode"},
	{"a policy's name such as `sjf+skip+easy` is taken apart", "simulator/policyname", "Parse"},
	{"simulated time advances from event to event", "simulator/sim", "Simulator.Advance"},
	{"the queue order of `sjf` is defined", "simulator/schedulers", "sjf"},
	{"EASY back-filling holds back jobs", "simulator/schedulers", "easy"},
	{"the GPUs of a job are chosen", "simulator/cluster", "NewPlacement"},
	{"run times are predicted from the history of a user and a job name", "simulator/predict/history", "New"},
	{"rewards are defined", "env/reward", "New"},
	{"an environment of the simulator steps", "env/sched", "Env.Step"},
	{"environments run in parallel", "env/vec", "New"},
	{"environments are registered", "lab/envs", "descriptors"},
	{"a frame of the bridge is parsed", "bridge/wire", "Decoder.Decode"},
	{"the PPO loss is built", "agents/ppo", "newLoss"},
	{"DDQN learns from a batch", "agents/ddqn", "newLoss"},
	{"checkpoints are read", "agents/checkpoint", "Load"},
	{"`train` runs its loop", "lab/run", "Train"},
	{"`eval` plays its windows", "lab/arena", "Evaluate"},
	{"the table of `eval` is written", "lab/report", "Report.WriteTable"},
	{"`steer` decides", "ops/steer", "Policy.ask"},
	{"named random streams are made", "internal/rng", "Source"},
	{"errors become exit codes", "cmd/gymctl/internal/cli", "Main"},
}

// whereIs is the table of places, each with the file and line-free link that a reader follows.
func whereIs(t *testing.T) string {
	var b strings.Builder
	b.WriteString("\n## Where is it?\n\n| where … | declaration | file |\n| --- | --- | --- |\n")
	for _, p := range places {
		file := fileOf(t, p)
		fmt.Fprintf(&b, "| %s | `%s` | [%s](../../%s) |\n", p.question, p.name, file, file)
	}
	return b.String()
}

// fileOf finds the file that has a declaration.
func fileOf(t *testing.T, p place) string {
	t.Helper()
	dir := filepath.Join("..", "..", filepath.FromSlash(p.pkg))
	pkgs, err := parser.ParseDir(token.NewFileSet(), dir, //nolint:staticcheck // no types are needed
		func(f fs.FileInfo) bool { return !strings.HasSuffix(f.Name(), "_test.go") }, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, pkg := range pkgs {
		for name, file := range pkg.Files {
			for _, d := range file.Decls {
				if declares(d, p.name) {
					return p.pkg + "/" + filepath.Base(name)
				}
			}
		}
	}
	t.Errorf("where_test.go says that %s stands in %s as %s, which is not declared there", p.question, p.pkg, p.name)
	return p.pkg
}

// declares tells whether a declaration has a name.
func declares(d ast.Decl, name string) bool {
	switch d := d.(type) {
	case *ast.FuncDecl:
		own := d.Name.Name
		if d.Recv != nil {
			of := d.Recv.List[0].Type
			if star, ok := of.(*ast.StarExpr); ok {
				of = star.X
			}
			if generic, ok := of.(*ast.IndexExpr); ok {
				of = generic.X
			}
			own = fmt.Sprint(of, ".", own)
		}
		return own == name
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				if s.Name.Name == name {
					return true
				}
			case *ast.ValueSpec:
				for _, n := range s.Names {
					if n.Name == name {
						return true
					}
				}
			}
		}
	}
	return false
}
