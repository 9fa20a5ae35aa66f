package archtest

// lower stands in a row of arrows for all packages of lower floors.
const lower = "lower floors"

// arrows lists the packages of this module that a package may import, besides internal/…, which is open to all. "x/..."
// is x and all packages below it. Every package must be listed here.
var arrows = map[string][]string{
	"internal/...": {},
	"configs":      {},

	// Children import the root of their folder, never each other, except where a line says so.
	"traces":             {},
	"traces/acme":        {"traces"},
	"traces/alibaba":     {"traces"},
	"traces/chronus":     {"traces"},
	"traces/csv":         {"traces"},
	"traces/dally":       {"traces"},
	"traces/dlrm":        {"traces"},
	"traces/elasticflow": {"traces"},
	"traces/gavel":       {"traces"},
	"traces/inventory":   {"traces", "traces/kube"}, // nodes of Kubernetes
	"traces/kube":        {"traces"},
	"traces/muri":        {"traces"},
	"traces/openb":       {"traces"},
	"traces/pai":         {"traces"},
	"traces/philly":      {"traces"},
	"traces/profile":     {"traces"},
	"traces/sacct":       {"traces"},
	"traces/sia":         {"traces"},
	"traces/spot":        {"traces"},
	"traces/swf":         {"traces"},
	"traces/synth":       {"traces", "traces/dally"},
	"traces/tiresias":    {"traces"},
	"traces/tpch":        {"traces"},
	"traces/tracetest":   {}, // its tests know all readers

	// Real clusters know jobs, and nothing of how they are simulated.
	"live":          {"traces"},
	"live/livetest": {"live", "traces"},
	"live/kube":     {"live", "traces", "traces/kube"}, // its objects are those of the recordings that are read there
	"live/demo":     {"live", "traces"},
	"live/slurm":    {"live", "traces", "traces/sacct"}, // the numbers in JSON of Slurm

	"nets":        {},
	"nets/kernel": {},
	"nets/op":     {"nets", "nets/kernel"},
	"nets/tape":   {"nets", "nets/kernel", "nets/op"},
	"nets/layer":  {"nets", "nets/kernel", "nets/op"},
	"nets/model":  {"nets", "nets/kernel", "nets/op", "nets/tape", "nets/layer"},
	"nets/optim":  {"nets", "nets/kernel"},
	// The format alone; a network as a model; a model as kernels. The last two know nothing of each other.
	"nets/onnx":        {},
	"nets/onnx/export": {"nets", "nets/kernel", "nets/model", "nets/onnx"},
	"nets/onnx/run":    {"nets/kernel", "nets/onnx"},

	"env":                     {},
	"env/envtest":             {"env"},
	"env/paint":               {"env"},
	"env/page":                {"env"},
	"simulator/cluster":       {"traces"},
	"simulator/predict":       {"traces"},
	"simulator/predict/boost": {}, // trees over numbers, which know nothing of jobs
	"simulator/predict/gbdt": {"simulator/predict", "simulator/predict/boost", "simulator/predict/history",
		"traces"},
	"simulator/predict/history":     {"simulator/predict", "traces"},
	"simulator/predict/predicttest": {"simulator/predict", "traces"},
	"simulator/sim":                 {"simulator/cluster", "simulator/predict", "traces"},
	"simulator/policyname":          {}, // the grammar of names alone; every place has its own policies
	// Its children make queues, choose GPUs and take decisions of their own; it makes policies of them.
	"simulator/schedulers": {"simulator/cluster", "simulator/policyname", "simulator/predict", "simulator/sim",
		"simulator/schedulers/...", "traces"},
	// a job, its request and its key; nothing of the policy that made it
	"simulator/schedulers/queue": {"simulator/cluster", "simulator/sim"},
	// what users write, compiled: variables of jobs and of what runs
	"simulator/schedulers/expression": {"simulator/policyname", "simulator/predict", "simulator/sim",
		"simulator/schedulers/queue", "simulator/schedulers/place"},
	"simulator/schedulers/attained":  {"simulator/sim", "simulator/schedulers/queue"},
	"simulator/schedulers/fairshare": {"simulator/cluster", "simulator/sim", "simulator/schedulers/queue"},
	"simulator/schedulers/place":     {"simulator/cluster", "simulator/sim", "simulator/schedulers/queue", "traces"},
	"simulator/schedulers/exact": {"simulator/cluster", "simulator/sim", "simulator/schedulers/queue",
		"simulator/schedulers/place", "traces"},
	"simulator/schedulers/rounds": {"simulator/cluster", "simulator/sim", "simulator/schedulers/queue",
		"simulator/schedulers/place", "traces"},
	"simulator/schedulers/delay": {"simulator/cluster", "simulator/sim", "simulator/schedulers/queue",
		"simulator/schedulers/place"},
	"simulator/schedulers/tuned": {"simulator/cluster", "simulator/predict", "simulator/sim",
		"simulator/schedulers/queue", "simulator/schedulers/place"},
	"simulator/hindsight": {"simulator/cluster", "simulator/sim"},
	"simulator/metrics":   {"simulator/cluster", "simulator/sim", "traces"},
	// env/sched declares the interfaces of encoders and rewards. Those packages implement them, and jobselect and its
	// siblings put everything together.
	"env/sched": {"env", "env/paint", "simulator/predict", "simulator/sim", "simulator/cluster", "simulator/schedulers",
		"traces", "traces/profile"},
	"env/encode": {"env", "simulator/sim", "simulator/cluster", "simulator/predict", "env/sched", "traces"},
	"env/reward": {"simulator/sim", "env/sched"},
	// It plays on with any heuristic, and draws futures from recorded windows, with the forecasts that their jobs had.
	"env/rollout": {"env", "simulator/cluster", "simulator/policyname", "simulator/predict",
		"simulator/predict/gbdt", "simulator/sim", "env/sched", "simulator/schedulers", "simulator/schedulers/tuned",
		"traces"},
	"env/jobselect":             wiring,
	"env/gpupick":               wiring,
	"env/queuerank":             wiring,
	"env/queuerank/rlscheduler": {"traces", "env", "simulator/sim", "env/sched", "simulator/cluster", "env/queuerank"},
	"env/queuerank/rltune": {"traces", "env", "simulator/sim", "env/sched", "simulator/cluster",
		"simulator/schedulers", "env/queuerank"},
	"env/delayoffer": append([]string{"traces/dally", "simulator/schedulers/delay",
		"simulator/schedulers/place"}, wiring...),
	"env/policymix": wiring,
	// of sched the life cycle only: there is no simulator
	"env/workerplace": {"env", "simulator/cluster", "env/paint", "env/page", "env/sched", "traces",
		"traces/profile"},
	"simulator/dag":         {},
	"simulator/dag/dagjson": {"simulator/dag"}, "simulator/dag/wfformat": {"simulator/dag"},
	"simulator/dag/synth":     {"simulator/dag"},
	"simulator/dag/alibaba":   {"simulator/dag", "traces"},
	"simulator/dag/listsched": {"simulator/dag"},
	// It opens a file whatever its format, so it knows every reader of graphs.
	"simulator/dag/graphs": {"simulator/dag", "simulator/dag/alibaba", "simulator/dag/dagjson", "simulator/dag/wfformat",
		"traces", "traces/alibaba", "traces/tpch"},
	// of sched as env/workerplace; rivals plan by listsched
	"env/dagplace": {"env", "simulator/dag", "simulator/dag/listsched", "simulator/dag/synth", "env/paint", "env/page",
		"env/sched", "traces"},
	"env/control": {"env", "env/page", "env/paint"},
	"peer/...":    {"traces", "simulator/metrics", "peer/internal/..."},
	"env/vec":     {"env"},

	"bridge/wire":   {"env"},
	"bridge/budget": {"bridge/wire"},
	"bridge/handle": {"env", "env/paint", "env/vec", "bridge/wire", "bridge/budget"},
	"bridge/server": {"env", "bridge/wire", "bridge/budget", "bridge/handle"},
	"bridge/client": {"env", "bridge/wire"},
	// It checks any server against the protocol, so only its tests import one.
	"bridge/conformance":         {"env", "bridge/wire", "bridge/conformance/compare"},
	"bridge/conformance/compare": {"bridge/wire"},

	"replay": {"env"},

	"agents":          {"env"},
	"agents/ddqn":     {"agents", "env", "replay", "nets/..."},
	"agents/improper": {"agents", "env", "replay", "nets"},
	"agents/ppo":      {"agents", "env", "replay", "nets/..."},
	"agents/maml":     {"agents", "env", "env/vec", "replay", "nets", "nets/optim"},
	// A model of how fast jobs run beside each other, and the agent that learns in it, are made for that environment.
	// builds plans and draws hopes as that environment does
	"agents/woa":        {"agents", "env", "simulator/dag", "env/dagplace"},
	"agents/imitate":    {"agents", "env"},
	"agents/onnx":       {"agents", "env", "nets/onnx", "nets/onnx/run"}, // policies that other programs trained
	"agents/train":      {"agents", "agents/imitate", "env", "env/vec"},
	"agents/checkpoint": {"agents"},
	"agents/agenttest":  {"agents", "agents/checkpoint", "env", "env/control", "env/vec"},

	// comments alone
	"simulator": {}, "bridge": {}, "peer": {}, "distributed": {}, "lab": {}, "ops": {}, "experiments": {},
	"distributed/workqueue": {},
	"distributed/ranks":     {"nets", "nets/kernel"},

	// What a run is, from the lowest up. Nothing here knows a real cluster.
	"lab/workload":    {lower, "lab/catalog"},
	"lab/predictors":  {lower, "lab/workload"},
	"lab/htmlpage":    {lower},
	"lab/decisionlog": {},
	"lab/catalog":     {"configs"},
	"lab/plan":        {lower, "lab/workload"},
	"lab/envs":        {lower, "lab/catalog", "lab/predictors", "lab/workload"},
	"lab/stream":      {lower},
	"lab/config":      {lower, "lab/envs", "lab/stream", "lab/workload"},
	"lab/report":      {lower, "lab/envs", "lab/workload"},
	"lab/rundir":      {lower, "lab/config", "lab/envs", "lab/report"},
	"lab/mlflow":      {"lab/rundir"},
	"lab/brought":     {lower, "lab/config", "lab/workload"},
	"lab/simulate": {lower, "lab/config", "lab/envs", "lab/htmlpage", "lab/report", "lab/predictors",
		"lab/workload"},
	"lab/external": {lower, "lab/envs", "lab/simulate", "lab/workload"},
	"lab/arena": {lower, "lab/brought", "lab/config", "lab/envs", "lab/predictors", "lab/report", "lab/rundir",
		"lab/stream", "lab/workload"},
	"lab/actor":              {lower, "lab/arena"},
	"lab/modelcard":          {lower, "lab/arena", "lab/report", "lab/rundir"},
	"lab/decisionlog/record": {lower, "lab/arena", "lab/config", "lab/decisionlog"},
	"lab/tune":               {lower, "lab/arena", "lab/config"},
	"lab/run":                {lower, "lab/arena", "lab/brought", "lab/config", "lab/report", "lab/rundir"},
	"lab/sweep":              {lower, "lab/arena", "lab/config", "lab/report", "lab/run", "lab/rundir"},
	"lab/benchmark": {lower, "lab/arena", "lab/config", "lab/envs", "lab/htmlpage", "lab/report", "lab/run",
		"lab/rundir", "lab/workload"},
	"lab/speed": {lower, "lab/arena", "lab/config", "lab/envs", "lab/simulate", "lab/workload"},

	"ops/steer/mirror": {lower},
	"ops/steer":        {lower, "ops/steer/mirror"},
	"ops/steer/report": {lower, "ops/incumbent", "ops/steer", "ops/steer/mirror"},
	"ops/incumbent":    {lower},
	"ops/assess":       {lower, "ops/incumbent", "ops/steer", "ops/steer/mirror", "ops/incumbent/known"}, // the last one in tests
	"ops/twin":         {lower, "ops/steer/mirror"},
	// Accountings for tests of what is concluded from accountings.
	"ops/incumbent/known": {lower},

	// A paper imports no other paper.
	"experiments/study":             {"configs", "distributed/workqueue", "lab/report", "simulator/cluster"},
	"experiments/study/cell":        {lower, "experiments/study"},
	"experiments/study/studytest":   {"experiments/study"},
	"experiments/asrpt":             paper,
	"experiments/dally":             paper,
	"experiments/ddppo":             paper,
	"experiments/estimates":         paper,
	"experiments/improper":          append([]string{"experiments/improper/queuenet"}, paper...),
	"experiments/improper/queuenet": {"env"}, // a world with a known optimum
	"experiments/lookahead":         paper,
	"experiments/lwf":               paper,
	"experiments/metascheduler":     append([]string{"experiments/metascheduler/mbmpo"}, paper...),
	"experiments/metascheduler/mbmpo": {"agents", "agents/maml", "env", "env/workerplace",
		"experiments/metascheduler/perfmodel", "nets/...", "replay"},
	"experiments/metascheduler/perfmodel": {"agents", "agents/maml", "env/workerplace", "nets/..."},
	"experiments/rlscheduler":             paper,
	"experiments/rltune":                  paper,
	"experiments/topdrl":                  paper,
	"experiments/worlrtgs":                paper,
	"experiments/papers":                  {lower, "experiments/..."},

	"examples/...": {lower},

	"pages":         {lower},
	"pages/runpage": {lower},

	"cmd/release": {},
	// The command line: a package of frame, one of shared flags, and one for each group of verbs, which do not import each
	// other.
	"cmd/gymctl":                   {"cmd/gymctl/internal/cli", "cmd/gymctl/internal/verbs"},
	"cmd/gymctl/internal/cli":      {"agents/checkpoint", "lab/workload", "nets/kernel", "traces"},
	"cmd/gymctl/internal/options":  groupOfVerbs,
	"cmd/gymctl/internal/start":    groupOfVerbs,
	"cmd/gymctl/internal/look":     groupOfVerbs,
	"cmd/gymctl/internal/operate":  groupOfVerbs,
	"cmd/gymctl/internal/research": groupOfVerbs,
	"cmd/gymctl/internal/machine":  groupOfVerbs,
	"cmd/gymctl/internal/verbs": {
		"cmd/gymctl/internal/cli", "cmd/gymctl/internal/start", "cmd/gymctl/internal/look", "cmd/gymctl/internal/operate",
		"cmd/gymctl/internal/research", "cmd/gymctl/internal/machine",
	},
	"cmd/gymctl/internal/clitest": {"cmd/gymctl/internal/cli", "cmd/gymctl/internal/verbs", "agents/checkpoint",
		"lab/rundir"},
}

// groupOfVerbs are the packages that a group of verbs may use.
var groupOfVerbs = []string{lower, "cmd/gymctl/internal/cli", "cmd/gymctl/internal/options"}

// paper lists what a paper or study may import beside the lower floors.
var paper = []string{lower, "experiments/study", "experiments/study/cell"}

// wiring lists the packages that a scheduling environment puts together.
var wiring = []string{
	"env", "simulator/cluster", "simulator/predict", "simulator/sim", "env/sched", "env/paint", "env/page", "env/encode",
	"env/reward",
	"simulator/schedulers", "simulator/schedulers/tuned", "traces", "traces/profile",
}

// libraries lists the outside modules that packages may import. Tests may also import rapid.
var libraries = map[string][]string{
	"configs":                     {"go.yaml.in/yaml/v3"},
	"live/kube":                   {"go.yaml.in/yaml/v3"}, // kubeconfig files
	"internal/kubetest":           {"go.yaml.in/yaml/v3"}, // manifests
	"traces/...":                  {"github.com/klauspost/compress"},
	"env/encode":                  {"golang.org/x/sys"},   // which instructions the processor has
	"env/paint":                   {"golang.org/x/image"}, // fonts, and smooth edges of shapes
	"simulator/schedulers/rounds": {"gonum.org/v1/gonum"},
	// the parser of expressions, and its trees
	"simulator/schedulers/expression": {"github.com/expr-lang/expr"},
	"nets/...": {"gorgonia.org/gorgonia", "gorgonia.org/tensor", "github.com/chewxy/hm",
		"go4.org/unsafe/assume-no-moving-gc", "golang.org/x/sys"},
	// the wire format of Protocol Buffers, without generated code
	"nets/onnx":     {"google.golang.org/protobuf"},
	"agents/ddqn":   {"gorgonia.org/gorgonia", "gorgonia.org/tensor"},
	"agents/ppo":    {"gorgonia.org/gorgonia", "gorgonia.org/tensor"},
	"agents/maml":   {"gorgonia.org/gorgonia", "gorgonia.org/tensor"},
	"bridge/...":    {"github.com/gorilla/websocket", "github.com/vmihailenco/msgpack/v5"},
	"bridge/server": {"github.com/prometheus/client_golang"},
	"bridge/handle": {"golang.org/x/sys"},
	// pages in tests
	"internal/chrome":                     {"github.com/chromedp/chromedp", "github.com/chromedp/cdproto"},
	"internal/packed":                     {"github.com/klauspost/compress"},
	"lab/...":                             {"github.com/klauspost/compress"},
	"lab/speed":                           {"github.com/gorilla/websocket"}, // bare frames, to measure the bridge against
	"experiments/...":                     {"github.com/klauspost/compress"},
	"experiments/metascheduler/perfmodel": {"gorgonia.org/gorgonia", "gorgonia.org/tensor"},
	// /metrics, as the bridge's server has it
	"pages": {"github.com/prometheus/client_golang"},
	// The queue of tasks for many machines: a broker in the process or beside it, with files, redelivery and membership.
	"distributed/workqueue": {"github.com/nats-io/nats-server/v2", "github.com/nats-io/nats.go"},
	// A NATS that gives out ranks; its server in tests.
	"distributed/ranks": {"github.com/nats-io/nats.go", "github.com/nats-io/nats-server/v2"},
	"cmd/release":       {"github.com/CycloneDX/cyclonedx-go"}, // the types of a bill of materials
	"cmd/...": {
		"github.com/spf13/cobra", "github.com/spf13/pflag",
		"golang.org/x/term", "github.com/prometheus/client_golang",
		"github.com/gorilla/websocket", // bare frames of hostile clients
	},
}

// everywhere are outside modules open to every package, and everyTest those open to every test.
var (
	everywhere = []string{"golang.org/x/exp"}
	everyTest  = []string{"pgregory.net/rapid"}
)

// maxLines is how many lines of Go a package has at most, beside its tests: what one can still read as one thing.
const maxLines = 4000

// large are the packages that have more, each with the reason. An entry that is not needed any more is a fault.
var large = map[string]string{
	"lab/arena": "one runner plays windows, episodes and streams, here, on other machines and in other programs; a part would " +
		"reach into its games",
	"lab/envs": "the descriptors of all environments, which other packages read as one table, with their memory and hashes",
	"simulator/schedulers": "orders, admissions and back-filling keep the books of one queue, and preempt by them; queues, " +
		"placements and expressions have packages of their own",
	"simulator/sim":     "what plays, what branches and what follows write the same books, and no other package may",
	"experiments/study": "a report.yaml is read into the tables, figures and claims of a study, which are drawn and compared here",
}

// repeatable are the folders whose results depend on seed and configuration alone; clocks are the ones below
// them that may read the wall clock.
var (
	repeatable = []string{"simulator/...", "peer/...", "env/...", "bridge/...", "traces/...", "replay/...", "nets/...",
		"agents/..."}
	clocks = []string{"bridge/..."}
)

// flagless are the folders whose packages know no flags: their messages name keys.
var flagless = []string{"lab", "simulator", "distributed", "experiments", "ops", "bridge", "env", "agents", "traces"}

// mayNameFlags are the packages and files below them that name flags all the same, and why.
var mayNameFlags = map[string]string{
	"experiments/...":         "the words of reports, which run directories keep byte for byte",
	"traces/...":              "errors of rows are text alone",
	"ops/twin/...":            "its report tells readers of gymctl twin what would show more",
	"ops/steer/...":           "its log tells readers of gymctl steer which limit acted",
	"bridge/budget/refuse.go": "clients of a server read it, and its owner sets flags",
	"lab/envs/workload.go":    "clients of a server read it, and its owner sets flags",
	"lab/envs/keys.go":        "clients of a server read it, and its owner sets flags",
	"lab/envs/page.go":        "documentation",
	"lab/workload/formats.go": "documentation",
	"lab/modelcard/card.go":   "writes commands",
	"lab/tune/weights.go":     "writes a command",
	"lab/speed/bridge.go":     "starts a Python program",
	"lab/speed/ranks.go":      "a line of progress",
	"lab/mlflow/mlflow.go":    "a line of progress",
	"lab/arena/fit.go":        "a line of progress",
	"lab/arena/contention.go": "a line of progress",
}
