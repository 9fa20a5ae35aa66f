package envs

import (
	_ "embed" // the words of keys
	"strings"
	"sync"

	"clustergym/env/queuerank"
	"clustergym/env/reward"
	"clustergym/traces/profile"
	"clustergym/traces/synth"
)

// keysText gives the allowed values and the meaning of every key: a table of those that several environments share, and
// one for each environment whose keys have other words. Names in braces stand for lists that packages have.
//
//go:embed keys.md
var keysText string

// keyWords are the tables of keysText, by environment and key; "all" are the shared ones.
var keyWords = sync.OnceValue(func() map[string]map[string][2]string {
	text := strings.NewReplacer(
		"{rewards}", strings.Join(reward.Names(), ", "), "{models}", strings.Join(profile.Names(), ", "),
		"{profiles}", strings.Join(synth.Profiles(), ", "), "{metrics}", strings.Join(queuerank.Metrics(), ", "),
		"{splits}", strings.Join(SplitNames[:], ", "),
	).Replace(keysText)
	words := map[string]map[string][2]string{}
	var ids []string
	for line := range strings.Lines(text) {
		if names, ok := strings.CutPrefix(line, "## "); ok {
			ids = strings.Fields(names)
			continue
		}
		if cells := strings.Split(strings.Trim(line, "|\n "), " | "); len(cells) == 3 && cells[0] != "key" {
			for _, id := range ids {
				if words[id] == nil {
					words[id] = map[string][2]string{}
				}
				words[id][cells[0]] = [2]string{cells[1], cells[2]}
			}
		}
	}
	return words
})

// words returns the allowed values and the meaning of the key at path.
func (d *Descriptor) words(path string) [2]string {
	if w, ok := keyWords()[d.ID][path]; ok {
		return w
	}
	return keyWords()["all"][path]
}
