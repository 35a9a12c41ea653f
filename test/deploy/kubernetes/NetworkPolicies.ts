import { type Door, doorsUsedBy } from "../../../layers/DoorOptions.ts"
import type * as Program from "../Program.ts"
import type { Deployment } from "./Kubernetes.ts"
import { at, isTree, kindOf, list, nameOf, type Tree, text } from "./Kustomize.ts"

interface Running {
  readonly deployment: Deployment
  readonly start: Program.Start
}

/** The standard ports of the servers, without TLS. */
const serverPorts: Readonly<Partial<Record<Door, number>>> = { database: 5432, redis: 6379, broker: 5672 }

/** What the policies do not allow and the pods need, or the other way round. */
export const problemsOf = (objects: ReadonlyArray<Tree>, running: ReadonlyArray<Running>): ReadonlyArray<string> => {
  const policies = objects.filter((object) => kindOf(object) === "NetworkPolicy")
  return [
    ...(policies.some(deniesAll) ? [] : ["pods are open by default"]),
    ...policies.flatMap((policy) => policyProblems(policy, running)),
    ...running.flatMap((one) => podProblems(one, policies))
  ]
}

const deniesAll = (policy: Tree): boolean => {
  const { egress, ingress, podSelector, policyTypes } = isTree(policy["spec"]) ? policy["spec"] : {}
  const types = list(policyTypes)
  const selectsAll = isTree(podSelector) && Object.keys(podSelector).length === 0
  return (
    selectsAll && types.includes("Ingress") && types.includes("Egress") && egress === undefined && ingress === undefined
  )
}

const selects = (policy: Tree, { spec }: Deployment): boolean => {
  const selector = at(policy, "spec", "podSelector")
  const { labels } = spec.template.metadata
  const matchLabels = at(selector, "matchLabels")
  return (
    Object.entries(isTree(matchLabels) ? matchLabels : {}).every(([key, value]) => labels[key] === value) &&
    list(at(selector, "matchExpressions")).every(
      (one) => at(one, "operator") === "In" && list(at(one, "values")).includes(labels[text(at(one, "key"))])
    )
  )
}

type Direction = "ingress" | "egress"

const rules = (policy: Tree, direction: Direction) => list(at(policy, "spec", direction))
const portsOf = (policy: Tree, direction: Direction) =>
  rules(policy, direction).flatMap((rule) => list(at(rule, "ports")).map((port) => at(port, "port")))

const policyProblems = (policy: Tree, running: ReadonlyArray<Running>): ReadonlyArray<string> => {
  const name = nameOf(policy)
  const selected = running.filter(({ deployment }) => selects(policy, deployment))
  const named = selected.flatMap(({ deployment }) =>
    deployment.spec.template.spec.containers[0].ports.map((p) => p.name)
  )
  const blocks = rules(policy, "egress").flatMap((rule) => list(at(rule, "to")).map((to) => at(to, "ipBlock")))
  const everywhere = blocks.filter((block) => at(block, "cidr") === "0.0.0.0/0")
  return [
    ...(selected.length > 0 ? [] : [`the policy ${name} selects no pods`]),
    ...portsOf(policy, "ingress")
      .filter((port) => !named.includes(text(port)))
      .map((port) => `the policy ${name} opens the port ${port}, which no pod has`),
    ...everywhere
      .filter((block) => !list(at(block, "except")).includes("169.254.0.0/16"))
      .map(() => `the policy ${name} lets pods reach the metadata of the cloud`)
  ]
}

const podProblems = ({ deployment, start }: Running, policies: ReadonlyArray<Tree>): ReadonlyArray<string> => {
  const { name } = deployment.metadata
  const own = policies.filter((policy) => selects(policy, deployment))
  const out = own.flatMap((policy) => portsOf(policy, "egress"))
  const into = own.flatMap((policy) => portsOf(policy, "ingress"))
  const used = doorsUsedBy(start.options)
  const servers = Object.entries(serverPorts).map(([door, port]) => ({
    door,
    port,
    isUsed: used.some((one) => one === door)
  }))
  return [
    ...servers
      .filter(({ isUsed, port }) => isUsed !== out.includes(port))
      .map(({ door, isUsed }) => `${name} ${isUsed ? "does not reach its" : "reaches a"} ${door}`),
    ...(used.includes("upstream") === out.includes(443) ? [] : [`${name} and upstreams: another rule than its role's`]),
    ...(out.includes(53) ? [] : [`${name} cannot resolve names`]),
    ...deployment.spec.template.spec.containers[0].ports
      .filter((port) => !into.includes(port.name))
      .map((port) => `nothing may call the port ${port.name} of ${name}`)
  ]
}
