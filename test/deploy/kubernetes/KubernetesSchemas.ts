import { ScaledObject } from "@kubernetes-models/keda/keda.sh/v1alpha1/ScaledObject"
import { Deployment } from "kubernetes-models/apps/v1/Deployment"
import { NetworkPolicy } from "kubernetes-models/networking.k8s.io/v1/NetworkPolicy"
import { PodDisruptionBudget } from "kubernetes-models/policy/v1/PodDisruptionBudget"
import { ConfigMap } from "kubernetes-models/v1/ConfigMap"
import { Namespace } from "kubernetes-models/v1/Namespace"
import { Service } from "kubernetes-models/v1/Service"
import { ServiceAccount } from "kubernetes-models/v1/ServiceAccount"
import { isTree, kindOf, nameOf, type Tree } from "./Kustomize.ts"

const models = [
  ConfigMap,
  Deployment,
  Namespace,
  NetworkPolicy,
  PodDisruptionBudget,
  ScaledObject,
  Service,
  ServiceAccount
]

/** Whether an object is one that Kubernetes, or KEDA, would accept and read as a whole. */
export const problemsOf = (object: Tree): ReadonlyArray<string> => {
  const name = `${kindOf(object)} ${nameOf(object)}`
  const model = models.find(({ apiVersion, kind }) => apiVersion === object["apiVersion"] && kind === object["kind"])
  if (model === undefined) return [`${name} has no schema`]
  const read = new Set<unknown>()
  try {
    model.prototype.validate.call(recording(object, [], read))
  } catch (error) {
    return [`${name}: ${String(error)}`]
  }
  return unread(object, [], read).map((path) => `${name}: Kubernetes does not know ${path}`)
}

/**
 * Notes which fields are read. The schemas allow unknown fields, as the API does, which then drops them; but what
 * validates an object reads each field that it knows.
 */
const recording = (value: Tree | ReadonlyArray<unknown>, path: ReadonlyArray<string>, read: Set<unknown>): object =>
  new Proxy(value, {
    get: (target, key, receiver) => {
      const found: unknown = Reflect.get(target, key, receiver)
      if (typeof key === "symbol") return found
      const inner = [...path, key]
      read.add(inner.join("/"))
      return isTree(found) || Array.isArray(found) ? recording(found, inner, read) : found
    }
  })

const unread = (value: unknown, path: ReadonlyArray<string>, read: Set<unknown>): ReadonlyArray<string> => {
  if (!isTree(value) && !Array.isArray(value)) return []
  return Object.entries(value).flatMap(([key, one]) => {
    const inner = [...path, key]
    return read.has(inner.join("/")) ? unread(one, inner, read) : [inner.join("/")]
  })
}
