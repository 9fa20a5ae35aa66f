package arena

import (
	"slices"
	"strconv"
	"strings"

	"clustergym/agents/onnx"
	"clustergym/configs"
	"clustergym/env"
	"clustergym/internal/fault"
	"clustergym/lab/brought"
	"clustergym/lab/config"
	"clustergym/lab/workload"
	format "clustergym/nets/onnx"
	"clustergym/simulator/cluster"
)

// Exported is a checkpoint as an ONNX model.
type Exported struct {
	*Opened
	Spec  env.Spec
	Model *format.Model
}

// Export reads a checkpoint, or the checkpoint of a run, and returns its greedy policy as an ONNX model for rows
// observations at a time, 0 = any number. Its metadata say what it is for (package onnx) and name commit as the
// program's. Faults are *fault.Mistakes.
func Export(dir string, rows int, commit string) (*Exported, error) {
	c, p, spec, err := openPolicy(dir, false)
	if err != nil {
		return nil, err
	}
	e, ok := p.(interface {
		Export(rows int) (*format.Model, error)
	})
	if !ok {
		return nil,
			fault.Mistakef("%s is of agent %s, whose policy is no network: only those of ppo, ddqn and %s have a form in ONNX",
				dir, c.Cfg.Agent, config.MetaAgent)
	}
	m, err := e.Export(rows)
	if err != nil {
		return nil, err
	}
	settings, err := runOf(&c.Cfg)
	if err != nil {
		return nil, err
	}
	for _, v := range [][2]string{
		{onnx.KeyEnv, spec.ID}, {onnx.KeySpec, onnx.SpecHash(spec)}, {onnx.KeyFields, onnx.Fields(spec)},
		{onnx.KeyName, c.Name}, {onnx.KeyAgent, c.Cfg.Agent}, {onnx.KeyStep, strconv.FormatInt(c.Meta.Step, 10)},
		{onnx.KeyRun, settings}, {onnx.KeySet, c.Meta.Kernels}, {onnx.KeyCommit, commit},
	} {
		if v[1] != "" {
			m.Metadata = append(m.Metadata, format.Property{Key: v[0], Value: v[1]})
		}
	}
	m.Doc = "The greedy policy of " + c.Name + " for " + spec.ID + "."
	return &Exported{Opened: c, Spec: spec, Model: m}, nil
}

// runOf returns the settings under which others play a model of the run. It leaves out names of files, because the
// files stay here: estimates of a fitted model become estimates that are learned from the workload.
func runOf(run *config.Config) (string, error) {
	copied := *run
	cfg := &copied
	if cfg.Estimates().File != "" {
		cfg.Edit()
		if err := cfg.Set("env.estimates=" + strings.TrimSuffix(brought.ModelPrefix, ":")); err != nil {
			return "", err
		}
	}
	var of struct {
		Env     config.Env            `yaml:"env"`
		Cluster string                `yaml:"cluster,omitempty"`
		Trace   *workload.TraceConfig `yaml:"trace,omitempty"`
	}
	of.Env = cfg.Env
	if cfg.Descriptor().Takes.Cluster {
		if _, short, err := cluster.Parse(cfg.Cluster); err == nil &&
			(short || slices.Contains(workload.ClusterPresets(), cfg.Cluster)) {
			of.Cluster = cfg.Cluster
		}
	}
	if cfg.Descriptor().Simulated() && cfg.Trace.File == "" && cfg.Trace.Profiles == "" {
		of.Trace = &cfg.Trace
	}
	b, err := configs.Encode(&of)
	return string(b), err
}
