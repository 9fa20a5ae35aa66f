// Package examples shows the packages at work, in five programs of a page each. Tests run them and compare what they
// print:
//
//	01_simulate     a trace on a cluster under shortest job first
//	02_environment  one episode of JobSelect-v1, step by step
//	03_train        a small PPO agent
//	04_checkpoint   an agent's checkpoint, written, read and played
//	05_bridge       the same environment over the bridge, from a client
package examples
