package study

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"clustergym/configs"
	"clustergym/internal/fault"
	"clustergym/simulator/cluster"
)

// opening are the keys whose value names a file that is opened.
var opening = []string{"file", "profiles", "imitate_from"}

// clusters are the keys whose value names a cluster, which can be a file.
var clusters = []string{"cluster", "clusters"}

// unsent returns the user's mistake if settings that came to a worker with a task name files that recorded settings do
// not name. A worker opens no file of its own because a task says so: what it says of that file goes back to the maker
// of the task.
func unsent(recorded, own configs.Validator) error {
	was, err := texts(recorded)
	if err != nil {
		return err
	}
	is, err := texts(own)
	if err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(is)) {
		for _, v := range is[key] {
			if slices.Contains(was[key], v) {
				continue
			}
			if what := opens(key, v); what != "" {
				return fault.Mistakef("%s: %s, and workers open no files that settings name; compute this form without workers",
					key, what)
			}
		}
	}
	return nil
}

// texts returns the texts in settings, by the name of their key or that of the list that holds them.
func texts(settings configs.Validator) (map[string][]string, error) {
	b, err := configs.JSON(settings)
	if err != nil {
		return nil, err
	}
	var of any
	if err := json.Unmarshal(b, &of); err != nil {
		return nil, err
	}
	all := map[string][]string{}
	var walk func(key string, v any)
	walk = func(key string, v any) {
		switch v := v.(type) {
		case string:
			all[key] = append(all[key], v)
		case []any:
			for _, e := range v {
				walk(key, e)
			}
		case map[string]any:
			for k, e := range v {
				walk(k, e)
			}
		}
	}
	walk("", of)
	return all, nil
}

// opens says in words which file the value of a key makes a program open, "" if none.
func opens(key, value string) string {
	if key == "set" || key == "args" { // KEY.PATH=VALUE, of the configuration of a run
		return opensBySet(value)
	}
	switch {
	case value == "":
	case slices.Contains(opening, key):
		return fmt.Sprintf("it names the file %q", value)
	case slices.Contains(clusters, key) && !embedded(value):
		return fmt.Sprintf("%q is no preset and no short form of a cluster", value)
	case strings.Contains(value, "gbdt:"):
		return fmt.Sprintf("it names the model %q", value)
	}
	return ""
}

// opensBySet is opens for a change of a run's configuration.
func opensBySet(set string) string {
	path, value, _ := strings.Cut(set, "=")
	path, value = strings.TrimSpace(strings.TrimSuffix(path, "+")), strings.TrimSpace(value)
	key := path[strings.LastIndexByte(path, '.')+1:]
	if at := strings.IndexByte(key, '['); at >= 0 {
		key = key[:at]
	}
	switch {
	case strings.ContainsAny(value, "{}&*!|>\n\\") || strings.Contains(value, ": "):
		return fmt.Sprintf("it sets %s to more than a plain value or a list", path) // which could name a file in many ways
	case strings.HasPrefix(value, "["):
		for e := range strings.SplitSeq(strings.Trim(value, "[]"), ",") {
			if what := opens(key, bare(e)); what != "" {
				return what
			}
		}
		return ""
	}
	return opens(key, bare(value))
}

// bare returns a plain value of YAML without the quotes around it.
func bare(value string) string { return strings.Trim(strings.TrimSpace(value), `"'`) }

// clusterFiles is the folder of the presets of clusters.
const clusterFiles = "clusters/"

// embedded reports whether a cluster is a short form or a preset.
func embedded(name string) bool {
	if _, short, _ := cluster.Parse(name); short {
		return true
	}
	if strings.ContainsAny(name, `/\`) {
		return false
	}
	_, err := fs.Stat(configs.Presets, clusterFiles+name+".yaml")
	return err == nil
}
