// Package baseline holds random play in any environment. Rules that know what an environment is about live beside it,
// such as env/jobselect's: they act through its action space, so they can do only what an agent can.
package baseline
