package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"clustergym/configs"
	"clustergym/env/jobselect"
	"clustergym/lab/envs"
)

// An environment of version 2 has one set of defaults. A server, and with it Python, opens it with the arguments of
// envs; train and eval --env ID read the preset of the environment, or else its default configuration. Settings that
// only make training easier (envs.Descriptor.Judged takes them away) may differ.
func TestEveryDoorOpensTheSameEnvironment(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "python", "src", "clustergym", "registration.py"))
	if err != nil {
		t.Fatal(err)
	}
	python, ongoing := string(page), 0
	if !strings.Contains(python, `kwargs={"env_id": env_id},`) {
		t.Error("Python registers environments with arguments of its own")
	}
	for _, id := range envs.IDs() {
		d := envs.Find(id)
		if !d.Ongoing {
			continue
		}
		ongoing++
		if !strings.Contains(python, `"`+id+`": None,`) {
			t.Errorf("%s: Python does not register it", id)
		}
		served, run := d.Args(), For(id)
		if d.Preset != "" {
			data, err := configs.Presets.ReadFile(d.Preset + ".yaml")
			if err != nil {
				t.Fatal(err)
			}
			if run, err = Decode(d.Preset, data); err != nil {
				t.Fatal(err)
			}
		}
		if run.Env.ID != id {
			t.Errorf("%s: preset %s is of %s", id, d.Preset, run.Env.ID)
			continue
		}
		judged := d.Judged
		if judged == nil {
			judged = func(s envs.Settings) envs.Settings { return s }
		}
		// What an agent is shown of an episode is the preset's own; the episode and what is paid are the same.
		if own, ok := run.Env.Settings.(*jobselect.Config); ok {
			seen := *own
			seen.Images = served.Settings.(*jobselect.Config).Images
			run.Env.Settings = &seen
		}
		for what, pair := range map[string][2]any{
			"trace": {served.Trace, run.Trace}, "cluster": {served.Cluster, run.Cluster},
			"settings": {judged(served.Settings), judged(run.Env.Settings)},
		} {
			if !reflect.DeepEqual(pair[0], pair[1]) {
				t.Errorf("%s: %s of gymctl serve and Python %+v, of --env (preset %q) %+v; write the preset's into lab/envs/list.go",
					id, what, pair[0], d.Preset, pair[1])
			}
		}
	}
	if ongoing < 5 {
		t.Errorf("%d environments of version 2", ongoing)
	}
	// Where no environment is named, all play the same one.
	source, err := os.ReadFile(filepath.Join("..", "..", "python", "src", "clustergym", "comparison.py"))
	if err != nil {
		t.Fatal(err)
	}
	if id := Default().Env.ID; !strings.Contains(string(source), "\nDEFAULT_ENV = \""+id+"\"\n") {
		t.Errorf("clustergym.compare does not play %s where no environment is named", id)
	}
}
