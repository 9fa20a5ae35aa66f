package inventory

import (
	"bytes"
	"regexp"
	"strings"
)

var (
	kubeTable = regexp.MustCompile(`^NAME\s+STATUS\s+ROLES`)
	kubeYAML  = regexp.MustCompile(`(?m)^(- )?kind: (Node|List|NodeList)\s*$`)
	sinfoJSON = regexp.MustCompile(`"sinfo"\s*:\s*\[`)
	gpuCell   = regexp.MustCompile(`(^|[\s|,;])(gres[:/])?gpu:[\w.:-]*\d`)
)

// Mistaken returns in a sentence what head is if a cluster's programs have printed it and Read cannot read it, "" for
// other files.
func Mistaken(head []byte) string {
	head = bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))
	first, _, _ := strings.Cut(strings.TrimLeft(string(head), " \t\r\n"), "\n")
	switch {
	case ownOf(head) != nil:
		return ""
	case kubeTable.MatchString(first):
		return "this is the table of kubectl get nodes, which has no GPUs; use what " + kubeCommand + " prints"
	case kubeYAML.Match(head) && bytes.Contains(head, []byte("apiVersion:")):
		return "these are nodes of Kubernetes as YAML; use what " + kubeCommand + " prints"
	case sniffJSON(head) && sinfoJSON.Match(head):
		return "this is what sinfo --json prints; use what " + sinfoCommand + " or " + scontrolCommand + " prints"
	case !sniffJSON(head) && gpuCell.MatchString(first) && !strings.ContainsAny(first, "{}="):
		return "these are rows of sinfo without its header, so which column is which is not known; run it without -h " +
			"(--noheader), as " + sinfoCommand
	}
	return ""
}
