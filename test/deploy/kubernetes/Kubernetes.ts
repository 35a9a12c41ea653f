import { Effect, Schema } from "effect"
import { lockTimeoutSeconds } from "../../../layers/postgres/Migrations.ts"
import manifest from "../../../package.json" with { type: "json" }
import type { Files } from "../Files.ts"
import * as Dockerfile from "../image/Dockerfile.ts"
import * as Program from "../Program.ts"
import * as KubernetesSchemas from "./KubernetesSchemas.ts"
import { at, isTree, kindOf, list, nameOf, render, type Tree, text } from "./Kustomize.ts"
import * as NetworkPolicies from "./NetworkPolicies.ts"

export const base = "deploy/kubernetes/base"
export const overlay = "deploy/kubernetes/production"

const Probe = Schema.Struct({
  httpGet: Schema.Struct({ path: Schema.String, port: Schema.String }),
  periodSeconds: Schema.Int,
  failureThreshold: Schema.Int
})

const Variable = Schema.Struct({
  name: Schema.String,
  value: Schema.optionalKey(Schema.String),
  valueFrom: Schema.optionalKey(
    Schema.Struct({
      secretKeyRef: Schema.Struct({
        name: Schema.String,
        key: Schema.String,
        optional: Schema.optionalKey(Schema.Boolean)
      })
    })
  )
})

const Container = Schema.Struct({
  image: Schema.String,
  args: Schema.Array(Schema.String),
  ports: Schema.Array(Schema.Struct({ name: Schema.String, containerPort: Schema.Int })),
  env: Schema.Array(Variable),
  envFrom: Schema.Array(Schema.Struct({ configMapRef: Schema.Struct({ name: Schema.String }) })),
  startupProbe: Probe,
  readinessProbe: Probe,
  livenessProbe: Probe
})
export type Container = typeof Container.Type

const Deployment = Schema.Struct({
  metadata: Schema.Struct({ name: Schema.String }),
  spec: Schema.Struct({
    replicas: Schema.optionalKey(Schema.Int),
    template: Schema.Struct({
      metadata: Schema.Struct({
        labels: Schema.Record(Schema.String, Schema.String),
        annotations: Schema.Record(Schema.String, Schema.String)
      }),
      spec: Schema.Struct({
        serviceAccountName: Schema.String,
        terminationGracePeriodSeconds: Schema.Int,
        containers: Schema.Tuple([Container])
      })
    })
  })
})
export type Deployment = typeof Deployment.Type

const decode = Schema.decodeUnknownSync(Deployment)

export const deployments = (objects: ReadonlyArray<Tree>): ReadonlyArray<Deployment> =>
  objects.filter((object) => kindOf(object) === "Deployment").map((object) => decode(object))

export const containerOf = ({ spec }: Deployment): Container => spec.template.spec.containers[0]

/** What the secret of an installation may contain. */
const secrets: Readonly<Record<string, string>> = {
  DATABASE_URL: "postgres://svc@postgres.example:5432/svc",
  REDIS_URL: "redis://redis.example:6379",
  RABBITMQ_URL: "amqp://svc@rabbitmq.example:5672",
  GATEWAY_ENCRYPTION_KEY: Buffer.alloc(32).toString("base64"),
  GATEWAY_ADMIN_TOKEN: `op_live_${"a".repeat(64)}`,
  SVC_STATUS_TOKEN: "made-up-token"
}

/** The variables and words of the pods: those of the image first, and only the required secrets. */
export const startOf = (files: Files, objects: ReadonlyArray<Tree>, { args, env, envFrom }: Container) => {
  const maps = envFrom.map(({ configMapRef: { name } }) => name)
  const data = objects
    .filter((object) => kindOf(object) === "ConfigMap" && maps.includes(nameOf(object)))
    .map((object) => object["data"])
  const own = env.flatMap(({ name, value, valueFrom }) => {
    if (value !== undefined) return [[name, value] as const]
    return valueFrom?.secretKeyRef.optional === true ? [] : [[name, secrets[name] ?? ""] as const]
  })
  return Program.start(args, {
    ...Dockerfile.environmentOf(Dockerfile.imageOf(files)),
    ...Object.assign({}, ...data),
    ...Object.fromEntries(own)
  })
}

/** What is wrong with the overlay, which contains the base. */
export const problemsOf = (files: Files): Effect.Effect<ReadonlyArray<string>> =>
  Effect.gen(function* () {
    const rendered = yield* Effect.exit(Effect.try(() => render(files, overlay)))
    if (rendered._tag === "Failure") return [String(rendered.cause)]
    const objects = rendered.value
    const invalid = objects.flatMap(KubernetesSchemas.problemsOf)
    if (invalid.length > 0) return invalid
    const all = deployments(objects)
    const starts = yield* Effect.forEach(all, (deployment) =>
      Effect.match(startOf(files, objects, containerOf(deployment)), {
        onFailure: (problems) => ({ deployment, problems }),
        onSuccess: (start) => ({ deployment, start })
      })
    )
    return [
      ...objects.flatMap((object) => referenceProblems(object, all)),
      ...all.flatMap((deployment) => deploymentProblems(files, deployment, objects)),
      ...starts.flatMap((one) =>
        "start" in one
          ? startProblems(one.deployment, one.start)
          : one.problems.map((problem) => `${one.deployment.metadata.name}: ${problem}`)
      ),
      ...NetworkPolicies.problemsOf(
        objects,
        starts.flatMap((one) => ("start" in one ? [{ deployment: one.deployment, start: one.start }] : []))
      )
    ]
  })

const isSelected = (selector: unknown, { spec }: Deployment): boolean =>
  isTree(selector) && Object.entries(selector).every(([key, value]) => spec.template.metadata.labels[key] === value)

const referenceProblems = (object: Tree, all: ReadonlyArray<Deployment>): ReadonlyArray<string> => {
  const name = `${kindOf(object)} ${nameOf(object)}`
  switch (kindOf(object)) {
    case "Secret":
      return [`${name} is in the repository`]
    case "ServiceAccount":
      return object["automountServiceAccountToken"] === false ? [] : [`${name} has a token`]
    case "Service":
      return serviceProblems(name, object, all)
    case "PodDisruptionBudget": {
      const found = all.filter((one) => isSelected(at(object, "spec", "selector", "matchLabels"), one))
      const lets = at(object, "spec", "maxUnavailable") === 1
      return [...(found.length === 1 ? [] : [`${name} selects no pods`]), ...(lets ? [] : [`${name} blocks nodes`])]
    }
    case "ScaledObject":
      return scalingProblems(name, object, all)
    default:
      return []
  }
}

const serviceProblems = (name: string, object: Tree, all: ReadonlyArray<Deployment>): ReadonlyArray<string> => {
  const found = all.filter((one) => isSelected(at(object, "spec", "selector"), one))
  const named = found.flatMap((one) => containerOf(one).ports.map((port) => port.name))
  return [
    ...(found.length === 1 ? [] : [`${name} selects no pods`]),
    ...list(at(object, "spec", "ports"))
      .map((port) => text(at(port, "targetPort")))
      .filter((port) => !named.includes(port))
      .map((port) => `${name} leads to the port ${port}, which its pods do not have`)
  ]
}

const scalingProblems = (name: string, object: Tree, all: ReadonlyArray<Deployment>): ReadonlyArray<string> => {
  const target = all.find((one) => one.metadata.name === at(object, "spec", "scaleTargetRef", "name"))
  const triggers = list(at(object, "spec", "triggers"))
  const queries = triggers.map((trigger) => text(at(trigger, "metadata", "query")))
  return [
    ...(triggers.every((trigger) => at(trigger, "metadata", "ignoreNullValues") === "false")
      ? []
      : [`${name} takes a missing metric for no load`]),
    ...(target === undefined ? [`${name} scales a deployment that does not exist`] : []),
    ...(target?.spec.replicas === undefined ? [] : [`${name} competes with the replicas of its deployment`]),
    ...queries.flatMap(metricsOf).flatMap((metric) => (Program.isMetric(metric) ? [] : [`${name} asks for ${metric}`]))
  ]
}

/** The metrics of the program in a query. */
export const metricsOf = (query: string): ReadonlyArray<string> => query.match(/\b(?:gateway|svc)_\w+/g) ?? []

/** The queries of all autoscalers. */
export const queries = (objects: ReadonlyArray<Tree>): ReadonlyArray<string> =>
  objects
    .filter((object) => kindOf(object) === "ScaledObject")
    .flatMap((object) => list(at(object, "spec", "triggers")).map((trigger) => text(at(trigger, "metadata", "query"))))

const secretName = /(?:PASSWORD|TOKEN|KEY|SECRET|DATABASE_URL|REDIS_URL|RABBITMQ_URL)$/

const hardening: ReadonlyArray<readonly [value: unknown, ...path: ReadonlyArray<string | number>]> = [
  [0, "strategy", "rollingUpdate", "maxUnavailable"],
  [false, "template", "spec", "automountServiceAccountToken"],
  [false, "template", "spec", "enableServiceLinks"],
  [true, "template", "spec", "securityContext", "runAsNonRoot"],
  ["RuntimeDefault", "template", "spec", "securityContext", "seccompProfile", "type"],
  [false, "template", "spec", "containers", 0, "securityContext", "allowPrivilegeEscalation"],
  [true, "template", "spec", "containers", 0, "securityContext", "readOnlyRootFilesystem"],
  ["ALL", "template", "spec", "containers", 0, "securityContext", "capabilities", "drop", 0]
]

const present: ReadonlyArray<ReadonlyArray<string | number>> = [
  ["template", "spec", "topologySpreadConstraints", 0, "topologyKey"],
  ["template", "spec", "containers", 0, "resources", "requests", "cpu"],
  ["template", "spec", "containers", 0, "resources", "requests", "memory"],
  ["template", "spec", "containers", 0, "resources", "limits", "memory"]
]

const deploymentProblems = (files: Files, deployment: Deployment, objects: ReadonlyArray<Tree>) => {
  const { name } = deployment.metadata
  const { env, image } = containerOf(deployment)
  const object = objects.find((one) => kindOf(one) === "Deployment" && nameOf(one) === name)
  const spec = object?.["spec"]
  const user = ["runAsUser", "runAsGroup"].map((key) => at(spec, "template", "spec", "securityContext", key)).join(":")
  const has = (kind: string, wanted: string) => objects.some((one) => kindOf(one) === kind && nameOf(one) === wanted)
  const { serviceAccountName } = deployment.spec.template.spec
  return [
    ...hardening
      .filter(([value, ...path]) => at(spec, ...path) !== value)
      .map(([value, ...path]) => `${name}: ${path.join(".")} is not ${value}`),
    ...present.filter((path) => at(spec, ...path) === undefined).map((path) => `${name} lacks ${path.join(".")}`),
    ...(user === Dockerfile.last(Dockerfile.imageOf(files), "USER")?.words[0] ? [] : [`${name} runs as ${user}`]),
    ...(image === `svc-runtime:${manifest.version}` ? [] : [`${name} runs the image ${image}`]),
    ...(has("ServiceAccount", serviceAccountName) ? [] : [`${name} has no account ${serviceAccountName}`]),
    ...(has("PodDisruptionBudget", name) ? [] : [`${name} has no budget of disruptions`]),
    ...env
      .filter(({ name, value }) => value !== undefined && secretName.test(name))
      .map((variable) => `${name} has the secret ${variable.name} in the open`),
    ...env
      .filter(({ name, valueFrom }) => valueFrom !== undefined && valueFrom.secretKeyRef.key !== name)
      .map((variable) => `${name} takes ${variable.name} from another key`)
  ]
}

const startProblems = (deployment: Deployment, start: Program.Start): ReadonlyArray<string> => {
  const { name } = deployment.metadata
  const { livenessProbe, ports, readinessProbe, startupProbe } = containerOf(deployment)
  const { spec, metadata } = deployment.spec.template
  const listening = Program.portsOf(start)
  const declared = ports.map(({ containerPort }) => containerPort)
  const seen = readinessProbe.periodSeconds * readinessProbe.failureThreshold
  const control = ports.find((port) => port.name === "control")?.containerPort
  return [
    ...(start.options.role === name ? [] : [`${name} runs the role ${start.options.role}`]),
    ...Program.loopbackListeners(start).map((problem) => `${name}: ${problem}`),
    ...declared.filter((port) => !listening.includes(port)).map((port) => `${name} does not listen on ${port}`),
    ...listening.filter((port) => !declared.includes(port)).map((port) => `${name} hides its port ${port}`),
    ...(spec.terminationGracePeriodSeconds > Program.stopSeconds(start.settings)
      ? []
      : [`${name} is killed before it has drained`]),
    ...(start.settings.drainDelaySeconds <= seen ? [`${name} closes its listeners before it is seen to drain`] : []),
    ...(startupProbe.periodSeconds * startupProbe.failureThreshold > lockTimeoutSeconds
      ? []
      : [`${name} is killed while it waits for a migration`]),
    ...[startupProbe, readinessProbe, livenessProbe]
      .filter(({ httpGet }) => !ports.some((port) => port.name === httpGet.port))
      .map(({ httpGet }) => `${name} is probed on the port ${httpGet.port}, which it does not have`),
    ...(livenessProbe.httpGet.path === readinessProbe.httpGet.path ? [`${name} is killed when it is not ready`] : []),
    ...(metadata.annotations["prometheus.io/port"] === String(control) ? [] : [`${name} is scraped on another port`])
  ]
}
