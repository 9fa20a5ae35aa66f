// Package bridge has the protocol by which other programs play environments, its server and its client.
//
// Its packages, from the lowest up (written by go test ./internal/archtest -run TestMaps -update):
//
//   - wire: is the byte format of the bridge, GBP/1
//   - budget: counts a server's memory
//   - client: plays environments that run in another process: those of gymctl serve, or of any server of the protocol
//     of package wire
//   - conformance/compare: reads and compares the values of replies: arrays of any encoding, rows of a batch, whole
//     replies
//   - conformance: checks a server against the protocol of package wire, in whatever language the server is written
//   - handle: is what the operations of the bridge's protocol do to environments
//   - server: serves environments to many clients over one listener, by the protocol of package wire, which
//     docs/reference/wire.md describes
package bridge
