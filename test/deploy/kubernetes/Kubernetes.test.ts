import { execFileSync, spawnSync } from "node:child_process"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { parseAllDocuments } from "yaml"
import { root } from "../../Guides.ts"
import { all, type Mistake, repository, withMistake } from "../Files.ts"
import * as Kubernetes from "./Kubernetes.ts"
import { kindOf, nameOf, render, type Tree } from "./Kustomize.ts"

const { base, overlay } = Kubernetes
const every = `${base}/every-deployment.yaml`
const gateway = `${base}/gateway.yaml`
const network = `${base}/network-policies.yaml`
const scaling = `${overlay}/autoscaling.yaml`

const mistakes: ReadonlyArray<Mistake> = [
  [`${base}/kustomization.yaml`, "  - graph.yaml", "  - graphs.yaml", "graphs.yaml does not exist"],
  [`${base}/kustomization.yaml`, "kind: Deployment", "kind: StatefulSet", "there is no StatefulSet"],
  [`${base}/kustomization.yaml`, "envs: [config.env]", "envs: [configuration.env]", "configuration.env does not exist"],
  [`${base}/kustomization.yaml`, "resources:", "bases:", "bases is not known"],
  [`${base}/config.env`, "LOG_LEVEL=info", "LOG_LEVEL=loud", "LOG_LEVEL must be trace"],
  [
    `${base}/config.env`,
    "GATEWAY_DRAIN_DELAY_SECONDS=10",
    "",
    "gateway closes its listeners before it is seen to drain"
  ],
  [`${overlay}/kustomization.yaml`, "../base", "../bases", "is no folder of Kustomize"],
  [
    `${overlay}/kustomization.yaml`,
    "name: svc-runtime\n    behavior",
    "name: svc\n    behavior",
    "there is no map svc"
  ],
  [`${overlay}/kustomization.yaml`, "path: /spec/replicas", "path: /spec/replica", "cannot be applied to gateway"],
  [`${overlay}/kustomization.yaml`, "newTag: 0.1.0", "newTag: latest", "gateway runs the image svc-runtime:latest"],
  [`${overlay}/config.env`, "UPSTREAM_BASE_URL=", "UPSTREAM_BASE_URL=models", "UPSTREAM_BASE_URL"],
  [`${overlay}/config.env`, "UPSTREAM_BASE_URL=", "UPSTREAM_URL=", "the program has no variable UPSTREAM_URL"],
  [`${overlay}/namespace.yaml`, "kind: Namespace", "kind: NameSpace", "NameSpace svc-runtime has no schema"],
  [scaling, "sum(gateway_active_requests)", "sum(gateway_open_requests)", "asks for gateway_open_requests"],
  [
    scaling,
    "name: messaging\n  minReplicaCount",
    "name: workers\n  minReplicaCount",
    "scales a deployment that does not"
  ],
  [scaling, "minReplicaCount: 2", "minReplicas: 2", "Kubernetes does not know spec/minReplicas"],
  [scaling, 'ignoreNullValues: "false"', 'ignoreNullValues: "true"', "gateway takes a missing metric for no load"],
  [scaling, 'threshold: "200"', "threshold: 200", "must be string"],
  [
    every,
    "httpGet:\n              path: /admin-ui/readyz",
    "httpget:\n              path: /admin-ui/readyz",
    "does not know"
  ],
  [
    every,
    "port: control\n            periodSeconds: 2\n            timeoutSeconds: 2\n            failureThreshold: 2",
    "port: proxy\n            periodSeconds: 2\n            timeoutSeconds: 2\n            failureThreshold: 2",
    "control is probed on the port proxy"
  ],
  [every, "failureThreshold: 90", "failureThreshold: 9", "gateway is killed while it waits for a migration"],
  [
    every,
    "healthz\n              port: control\n            periodSeconds: 10",
    "readyz\n              port: control\n            periodSeconds: 10",
    "graph is killed when it is not ready"
  ],
  [every, "maxUnavailable: 0", "maxUnavailable: 1", "strategy.rollingUpdate.maxUnavailable is not 0"],
  [every, "runAsNonRoot: true", "runAsNonRoot: false", "runAsNonRoot is not true"],
  [every, "runAsUser: 65532", "runAsUser: 1000", "status runs as 1000:65532"],
  [every, "readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false", "readOnlyRootFilesystem is not true"],
  [every, "type: RuntimeDefault", "type: Unconfined", "seccompProfile.type is not RuntimeDefault"],
  [every, "drop: [ALL]", "drop: [NET_RAW]", "capabilities.drop.0 is not ALL"],
  [every, "automountServiceAccountToken: false", "automountServiceAccountToken: true", "automountServiceAccountToken"],
  [every, 'prometheus.io/port: "8081"', 'prometheus.io/port: "8080"', "graph is scraped on another port"],
  [gateway, "automountServiceAccountToken: false", "automountServiceAccountToken: true", "gateway has a token"],
  [gateway, "serviceAccountName: svc-runtime-gateway", "serviceAccountName: gateway", "gateway has no account gateway"],
  [gateway, "args: [gateway, --upstream, http]", "args: [gateway, --upstreams, http]", "the program does not accept"],
  [gateway, "args: [gateway, --upstream, http]", "args: [control]", "gateway runs the role control"],
  [gateway, "terminationGracePeriodSeconds: 180", "terminationGracePeriodSeconds: 150", "killed before it has drained"],
  [gateway, "containerPort: 8080", "containerPort: 8000", "gateway does not listen on 8000"],
  [gateway, "targetPort: proxy", "targetPort: http", "leads to the port http"],
  [
    gateway,
    /(kind: Service\n[\s\S]*?component: gateway\nspec:[\s\S]*?component: )gateway/,
    "$1gateways",
    "selects no pods"
  ],
  [gateway, "maxUnavailable: 1", "maxUnavailable: 0", "PodDisruptionBudget gateway blocks nodes"],
  [
    gateway,
    /valueFrom:\n.*\n.*\n +key: DATABASE_URL/,
    "value: postgres://svc:pw@db/svc",
    "the secret DATABASE_URL in the"
  ],
  [gateway, "key: REDIS_URL", "key: REDIS", "gateway takes REDIS_URL from another key"],
  [gateway, "name: GATEWAY_DRAIN_SECONDS", "name: GATEWAY_DRAIN", "the program has no variable GATEWAY_DRAIN"],
  [gateway, "memory: 512Mi", "disk: 512Mi", "gateway lacks template.spec.containers.0.resources.requests.memory"],
  [`${base}/control.yaml`, / {12}- name: DATABASE_URL\n(?: {14}.*\n)+/, "", "Set DATABASE_URL"],
  [`${base}/messaging.yaml`, "args: [messaging, --example]", "args: [messaging]", "The role messaging needs tasks"],
  [`${base}/status.yaml`, / {12}- name: SVC_STATUS_TOKEN\n(?: {14}.*\n)+/, "", "SVC_STATUS_TOKEN is required"],
  [`${base}/graph.yaml`, "0.0.0.0:8082", "127.0.0.1:8082", "SVC_STATUS_BIND_ADDR is 127.0.0.1"],
  [network, "policyTypes: [Ingress, Egress]", "policyTypes: [Ingress]", "pods are open by default"],
  [network, "port: 5432", "port: 5433", "gateway does not reach its database"],
  [network, "port: 5672", "port: 5673", "messaging does not reach its broker"],
  [network, "values: [gateway, control]", "values: [gateway, control, graph]", "graph reaches a database"],
  [network, /- port: proxy/, "- port: http", "the policy clients opens the port http"],
  [network, "- port: proxy\n        ", "", "nothing may call the port proxy of gateway"],
  [network, "component: control\n", "component: operator\n", "the policy operators selects no pods"],
  [network, "169.254.0.0/16, ", "", "lets pods reach the metadata of the cloud"],
  [network, "port: 443", "port: 4443", "gateway and upstreams"],
  [network, /port: 53\n/g, "port: 54\n", "graph cannot resolve names"]
]

describe("the manifests for Kubernetes", () => {
  it.live("keep their rules", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* Kubernetes.problemsOf(repository), [])
    })
  )

  it.live.each(mistakes)("%s: a mistake is found: %s → %s", ([file, right, wrong, named]) =>
    Effect.gen(function* () {
      assert.include((yield* Kubernetes.problemsOf(withMistake(file, right, wrong))).join("\n"), named)
    })
  )

  it("have a deployment for each role", () => {
    assert.sameMembers(
      Kubernetes.deployments(render(repository, overlay)).map(({ metadata }) => metadata.name),
      ["gateway", "control", "messaging", "status", "graph"]
    )
  })

  it("have no file that nothing refers to", () => {
    const named = [base, overlay].map((folder) => repository(`${folder}/kustomization.yaml`)).join("\n")
    const files = all
      .filter((file) => file.startsWith("deploy/kubernetes/"))
      .map((file) => file.split("/").at(-1) ?? "")
    assert.deepStrictEqual(
      files.filter((file) => file !== "kustomization.yaml" && !named.includes(file)),
      []
    )
  })
})

const kubectl = spawnSync("kubectl", ["version", "--client"]).status === 0
if (!kubectl) process.stderr.write("\n  SKIPPED: the comparison with kubectl kustomize: no kubectl on the PATH\n")

describe.skipIf(!kubectl)("kubectl kustomize", () => {
  it.each([base, overlay])("renders the objects of %s that the rules see", (folder) => {
    const rendered = execFileSync("kubectl", ["kustomize", join(root, folder)], { encoding: "utf8" })
    // The hash of the content.
    const plain = rendered.replaceAll(/\bsvc-runtime-[a-z0-9]{10}\b/g, "svc-runtime")
    const theirs = parseAllDocuments(plain).map((document): Tree => document.toJS())
    assert.deepStrictEqual(sorted(theirs), sorted(render(repository, folder)))
  })
})

const sorted = (objects: ReadonlyArray<Tree>): ReadonlyArray<Tree> =>
  objects.toSorted((one, other) => keyOf(one).localeCompare(keyOf(other)))
const keyOf = (object: Tree): string => `${kindOf(object)} ${nameOf(object)}`
