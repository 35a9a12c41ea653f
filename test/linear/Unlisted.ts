/** Source files that take text apart, and yet have no entry among the readers: why. */
const reasons: ReadonlyArray<readonly [why: string, files: ReadonlyArray<string>]> = [
  [
    "reads what whoever starts the process says: environment, command line, files of the operator",
    [
      "layers/AuditCommands.ts",
      "layers/Commands.ts",
      "layers/ConfigurationCommands.ts",
      "layers/Environment.ts",
      "layers/amqp/Link.ts"
    ]
  ],
  [
    "hands text of bounded length to a reader that is listed, or to a parser alone",
    [
      "src/control/Intake.ts",
      "src/control/KeyGuardrails.ts",
      "src/gateway/AnyBody.ts",
      "src/gateway/GuardedAnswer.ts",
      "src/gateway/ObjectRules.ts",
      "src/gateway/RequestBody.ts",
      "src/gateway/WildcardRequest.ts",
      "src/gateway/identity/Claims.ts",
      "src/gateway/identity/Identities.ts",
      "src/gateway/identity/IssuerKeys.ts",
      "src/gateway/model/ServiceCall.ts",
      "src/graph/GraphRoutes.ts",
      "src/status/DeadLetterParameters.ts",
      "src/status/DeadLetterRoutes.ts",
      "src/status/HistoryParameters.ts",
      "src/status/StatusRoutes.ts"
    ]
  ],
  [
    "reads rows and values that this program wrote itself",
    [
      "src/control/PolicyLayers.ts",
      "src/gateway/LimitsScripts.ts",
      "src/gateway/ObjectOwners.ts",
      "src/gateway/UsageRow.ts",
      "src/gateway/UsageWriter.ts",
      "src/gateway/model/Changes.ts",
      "src/gateway/model/ServiceTable.ts",
      "src/gateway/model/Vault.ts",
      "src/status/DeadLetterScripts.ts",
      "src/status/RedisStatusStore.ts",
      "src/status/ReplayJobs.ts",
      "src/status/StoredDeadLetter.ts",
      "src/status/StreamBookmark.ts"
    ]
  ],
  [
    "reads fields of operators that a schema bounds to some hundred characters",
    [
      "src/control/OpenApiSync.ts",
      "src/control/ServiceRules.ts",
      "src/control/api/ModelPricesApi.ts",
      "src/status/RedisDLQStore.ts"
    ]
  ],
  [
    "serves the gateway's own pages, whose text it knows",
    ["src/control/DocsPage.ts", "src/control/UpstreamUiListener.ts"]
  ],
  [
    "reads names, keys and patterns of topologies, which AMQP bounds to 255 bytes",
    [
      "layers/broker-memory/Routing.ts",
      "src/messaging/Aggregation.ts",
      "src/messaging/TopicPattern.ts",
      "src/messaging/TopologyGraph.ts"
    ]
  ],
  [
    "reads a broker's or a Redis's words about one command, which are short",
    [
      "layers/amqp/Culprit.ts",
      "layers/amqp/Deliveries.ts",
      "layers/amqp/Failure.ts",
      "layers/amqp/PublishFrames.ts",
      "layers/amqp/QueueKind.ts",
      "layers/broker-memory/StreamLog.ts",
      "layers/redis-memory/Streams.ts",
      "src/gateway/EvictionWarning.ts"
    ]
  ],
  [
    "is an example or a stand-in that nobody else's text reaches",
    ["layers/simulator/MessageBatches.ts", "src/messaging/example/Workers.ts"]
  ]
]

export const notForeign: ReadonlyMap<string, string> = new Map(
  reasons.flatMap(([why, files]) => files.map((file) => [file, why] as const))
)
