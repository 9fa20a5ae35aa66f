// Package handle is what the operations of the bridge's protocol do to environments. A Handle is one open set of
// environments: it reads the fields of requests, steps, resets, saves and renders the environments (env/vec), and
// writes the replies of package wire.
//
// It knows nothing of connections, sessions and the order of messages, which are package server's.
package handle
