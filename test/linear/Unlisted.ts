/** Source files that take text apart, and yet have no entry among the readers: why. */
const reasons: ReadonlyArray<readonly [why: string, files: ReadonlyArray<string>]> = [
  [
    "reads the texts of tests",
    [
      "layers/testing/HandlerCheckFailed.ts",
      "layers/testing/Labels.ts",
      "layers/testing/contract/UpstreamContract.ts",
      "layers/testing/contract/broker/Declaring.ts",
      "layers/testing/contract/broker/Publishing.ts",
      "layers/testing/contract/upstream/ScriptedServer.ts",
      "layers/testing/contract/upstream/TargetRequests.ts"
    ]
  ],
  [
    "reads what whoever starts or installs the process says: environment, command line, files of the operator, a package's own manifest",
    [
      "layers/commands/ArchiveAudit.ts",
      "layers/commands/DatabaseCommands.ts",
      "layers/commands/ChangeConfiguration.ts",
      "layers/commands/init/NewProject.ts",
      "layers/commands/init/OwnPackage.ts",
      "layers/commands/init/ProjectName.ts",
      "layers/Environment.ts",
      "layers/environment/VariableKinds.ts",
      "layers/amqp/Link.ts",
      "layers/drivers/InstalledDriver.ts",
      "layers/postgres/PreparedDatabase.ts",
      "layers/roles/TasksModule.ts",
      "layers/workers/WorkerIdentity.ts",
      "src/control/portal/InstallationFacts.ts",
      "src/process/SemanticConventions.ts"
    ]
  ],
  [
    "hands text of bounded length to a reader that is listed, or to a parser alone",
    [
      "src/control/holder/TestOutcome.ts",
      "src/control/http/RequestDecoding.ts",
      "src/control/keys/KeyGuardrails.ts",
      "src/control/policies/GuardrailBench.ts",
      "src/control/sign-in/OidcProvider.ts",
      "src/control/sign-in/StartLinkRoutes.ts",
      "src/control/tasks/TaskOperations.ts",
      "src/guardrails/StreamTest.ts",
      "src/gateway/request/LenientBody.ts",
      "src/gateway/forward/BufferedResponse.ts",
      "src/gateway/forward/objects/ObjectAccess.ts",
      "src/gateway/request/RequestBody.ts",
      "src/gateway/WildcardBody.ts",
      "src/gateway/TextRoutes.ts",
      "src/gateway/auth/Claims.ts",
      "src/identity/Discovery.ts",
      "src/policy/ServiceCall.ts",
      "src/graph/GraphRoutes.ts",
      "src/status/http/CancellationParameters.ts",
      "src/status/http/DeadLetterParameters.ts",
      "src/status/http/DeadLetterResponses.ts",
      "src/status/http/HistoryParameters.ts",
      "src/status/http/OperationBody.ts",
      "src/status/http/TaskParameters.ts",
      "src/status/http/StatusRoutes.ts",
      "src/status/payload/PayloadCheck.ts",
      "src/status/replay/LetterEdit.ts",
      "src/status/replay/ReplayOutcomes.ts"
    ]
  ],
  [
    "reads rows and values that this program wrote itself",
    [
      "layers/data/DirectoryVersion.ts",
      "layers/journal/Frames.ts",
      "layers/journal/Recovery.ts",
      "layers/workers/WorkersMetrics.ts",
      "src/control/policies/GuardrailCoverages.ts",
      "src/control/policies/PolicyLayers.ts",
      "src/control/sign-in/PendingSignIn.ts",
      "src/gateway/limits/LimitsScripts.ts",
      "src/state/limits/CounterMarks.ts",
      "src/state/limits/CounterReadings.ts",
      "src/state/limits/CounterReset.ts",
      "src/gateway/forward/objects/ObjectOwners.ts",
      "src/state/UsageRow.ts",
      "src/gateway/usage/UsageWriter.ts",
      "src/state/Changes.ts",
      "src/policy/ServiceTable.ts",
      "src/state/Vault.ts",
      "src/messaging/control/CancelScripts.ts",
      "src/live/Digest.ts",
      "src/process/RunningProcesses.ts",
      "src/status/queues/LiveQueues.ts",
      "src/status/tasks/RedisTaskIndex.ts",
      "src/messaging/control/ControlStore.ts",
      "src/messaging/control/HandlerSchemas.ts",
      "src/status/store/RedisStatusStore.ts",
      "src/status/cancellations/CancellationJob.ts",
      "src/status/cancellations/Cancellations.ts",
      "src/status/replay/ReplayJob.ts",
      "src/status/replay/ReplayJobs.ts",
      "src/status/replay/ReplayPlan.ts",
      "src/status/replay/ReplayPlanScripts.ts",
      "src/status/dead-letters/OutcomeIndex.ts",
      "src/status/dead-letters/StoredDeadLetter.ts",
      "src/status/hub/StreamCheckpoint.ts"
    ]
  ],
  [
    "reads fields of operators and holders that a schema bounds to some hundred characters",
    [
      "src/control/api/limits/RaiseRequests.ts",
      "src/control/services/OpenApiSync.ts",
      "src/control/services/ServiceValidation.ts",
      "src/gateway/telemetry/GenAiAttributes.ts",
      "src/control/api/providers/ModelPricesApi.ts",
      "src/control/usage/UsageSeries.ts",
      "src/control/api/FindApi.ts",
      "src/status/dead-letters/RedisDLQStore.ts"
    ]
  ],
  ["takes apart a constant of the program", ["src/control/usage/UsageSql.ts"]],
  [
    "serves the gateway's own pages, whose text it knows",
    [
      "src/control/http/DocsPage.ts",
      "src/control/portal/PortalPage.ts",
      "src/control/upstream-ui/UpstreamUiListener.ts"
    ]
  ],
  [
    "reads names, keys and patterns of topologies, which AMQP bounds to 255 bytes",
    [
      "layers/broker-memory/Routing.ts",
      "src/messaging/topology/Aggregation.ts",
      "src/messaging/topology/TopicPattern.ts",
      "src/messaging/topology/TopologyGraph.ts"
    ]
  ],
  [
    "reads a broker's or a Redis's words about one command, which are short",
    [
      "layers/amqp/ChannelErrorAttribution.ts",
      "layers/amqp/Deliveries.ts",
      "layers/amqp/AmqpFailure.ts",
      "layers/amqp/PublishFrames.ts",
      "layers/amqp/QueueKind.ts",
      "layers/broker-memory/queues/StreamLog.ts",
      "layers/redis-memory/Keys.ts",
      "layers/redis-memory/Streams.ts",
      "src/gateway/limits/EvictionWarning.ts"
    ]
  ],
  [
    "is an example or a stand-in that nobody else's text reaches",
    ["layers/simulator/MessageBatches.ts", "src/example/Workers.ts"]
  ]
]

export const notForeign: ReadonlyMap<string, string> = new Map(
  reasons.flatMap(([why, files]) => files.map((file) => [file, why] as const))
)
