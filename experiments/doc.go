// Package experiments is the floor on which everything is wired together; its packages are below it. From the lowest:
//
//	workload                                  traces, clusters and profiles by name
//	simulate, plan, envs                      gymctl sim, gymctl plan; every environment by its id
//	config, report                            the configuration of a run; the result of a comparison and its table
//	rundir, arena                             run directories; policies play and are compared: gymctl eval
//	run, sweep                                gymctl train; gymctl sweep
//	bench                                     gymctl speed
//	topdrl, dally, worlrtgs, metascheduler    one paper each, with its README, settings and expected figures
//	estimates                                 what schedulers lose by not knowing run times, likewise
//	papers                                    the list of them
//
// live serves pages about all of these: gymctl ui; decisionlog is the format of what it replays, mlflow sends what a run reports.
//
// workqueue has tasks done by other machines, ranks sums the gradients of several processes; neither knows what for.
// study runs a reproduction cell by cell; catalog fetches public traces; htmlpage draws schedules; statistic, texttable,
// jsonl and safefile are small tools. Algorithms, environments and formats live on the floors below.
package experiments
