package rundir

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"clustergym/configs"
	"clustergym/internal/tfevents"
	"clustergym/lab/config"
)

// Params returns the keys of a configuration in the form of --set, as in ppo.learning_rate, in alphabetical order.
// Lists are texts.
func Params(cfg *config.Config) ([]tfevents.Param, error) {
	b, err := configs.JSON(cfg)
	if err != nil {
		return nil, err
	}
	var tree map[string]any
	if err := json.Unmarshal(b, &tree); err != nil {
		return nil, err
	}
	return appendParams(nil, "", tree), nil
}

// ParamText returns the value of a key as text.
func ParamText(p tfevents.Param) string {
	if f, ok := p.Value.(float64); ok {
		b, _ := json.Marshal(f) // a number of a document
		return string(b)
	}
	return fmt.Sprint(p.Value)
}

func appendParams(all []tfevents.Param, prefix string, tree map[string]any) []tfevents.Param {
	for _, k := range slices.Sorted(maps.Keys(tree)) {
		switch v := tree[k].(type) {
		case map[string]any:
			all = appendParams(all, prefix+k+".", v)
		case float64, bool, string:
			all = append(all, tfevents.Param{Name: prefix + k, Value: v})
		case nil: // not set
		default:
			b, _ := json.Marshal(v) // it was JSON before
			all = append(all, tfevents.Param{Name: prefix + k, Value: string(b)})
		}
	}
	return all
}
