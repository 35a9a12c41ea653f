import { join } from "node:path"
import { parseAllDocuments } from "yaml"
import { exists, type Files, variables, yaml } from "../Files.ts"

/** A tree of YAML. */
export type Tree = Readonly<Record<string, unknown>>

export const isTree = (value: unknown): value is Tree =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The value at the end of the path; nothing where the path does not lead. */
export const at = (tree: unknown, ...path: ReadonlyArray<string | number>): unknown =>
  path.reduce<unknown>(
    (found, key) => (Array.isArray(found) ? found[Number(key)] : isTree(found) ? found[String(key)] : undefined),
    tree
  )

export const text = (value: unknown): string => (typeof value === "string" ? value : "")
export const list = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])

export const kindOf = (object: Tree): string => text(object["kind"])
export const nameOf = (object: Tree): string => text(at(object, "metadata", "name"))

/** A folder of Kustomize refers to something that does not exist, or to something that this reader does not know. */
export class KustomizeError extends Error {
  override readonly name = "KustomizeError"
}

const known = new Set(["apiVersion", "kind", "namespace", "resources", "patches", "configMapGenerator", "images"])

/**
 * The objects of a folder, as `kubectl kustomize` shows them, but with the plain names of generated maps. Reads only
 * what the folders of this repository use.
 */
export const render = (files: Files, folder: string): ReadonlyArray<Tree> => {
  const kustomization = treeOf(yaml(files(join(folder, "kustomization.yaml"))), folder)
  for (const key of Object.keys(kustomization)) if (!known.has(key)) throw new KustomizeError(`${key} is not known`)
  const resources = list(kustomization["resources"]).flatMap((resource) => read(files, join(folder, text(resource))))
  const generated = list(kustomization["configMapGenerator"]).reduce<ReadonlyArray<Tree>>(
    (objects, generator) => generate(files, folder, objects, generator),
    resources
  )
  const patched = list(kustomization["patches"]).reduce<ReadonlyArray<Tree>>(
    (objects, patch) => applyPatch(files, folder, objects, patch),
    generated
  )
  const images = list(kustomization["images"])
  const namespace = kustomization["namespace"]
  return patched.map((object) => withNamespace(treeOf(withImages(object, images), folder), namespace))
}

const treeOf = (value: unknown, place: string): Tree => {
  if (!isTree(value)) throw new KustomizeError(`${place} is no object`)
  return value
}

const fileOf = (files: Files, path: string): string => {
  if (!exists(path)) throw new KustomizeError(`${path} does not exist`)
  return files(path)
}

const read = (files: Files, path: string): ReadonlyArray<Tree> => {
  if (!path.endsWith(".yaml")) {
    if (!exists(join(path, "kustomization.yaml"))) throw new KustomizeError(`${path} is no folder of Kustomize`)
    return render(files, path)
  }
  return parseAllDocuments(fileOf(files, path)).map((document) => treeOf(document.toJS(), path))
}

const generate = (files: Files, folder: string, objects: ReadonlyArray<Tree>, generator: unknown) => {
  const name = text(at(generator, "name"))
  const data = Object.assign(
    {},
    ...list(at(generator, "envs")).map((env) => variables(fileOf(files, join(folder, text(env)))))
  )
  if (at(generator, "behavior") !== "merge")
    return [...objects, { apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data }]
  if (!objects.some((object) => kindOf(object) === "ConfigMap" && nameOf(object) === name))
    throw new KustomizeError(`there is no map ${name} to merge into`)
  return objects.map((object) =>
    kindOf(object) === "ConfigMap" && nameOf(object) === name ? treeOf(merge(object, { data }), folder) : object
  )
}

const applyPatch = (files: Files, folder: string, objects: ReadonlyArray<Tree>, patch: unknown) => {
  const kind = text(at(patch, "target", "kind"))
  const name = at(patch, "target", "name")
  const isTarget = (object: Tree) => kindOf(object) === kind && (name === undefined || nameOf(object) === name)
  if (!objects.some(isTarget)) throw new KustomizeError(`there is no ${kind} ${text(name)} to patch`)
  const path = at(patch, "path")
  const content = yaml(path === undefined ? text(at(patch, "patch")) : fileOf(files, join(folder, text(path))))
  return objects.map((object) => {
    if (!isTarget(object)) return object
    if (Array.isArray(content)) return content.reduce<Tree>(removeAt, object)
    const { metadata: _, ...changes } = treeOf(content, folder)
    return treeOf(merge(object, changes), folder)
  })
}

const removeAt = (object: Tree, operation: unknown): Tree => {
  const [, ...keys] = text(at(operation, "path")).split("/")
  if (at(operation, "op") !== "remove" || at(object, ...keys) === undefined)
    throw new KustomizeError(`${JSON.stringify(operation)} cannot be applied to ${nameOf(object)}`)
  return treeOf(without(object, keys), nameOf(object))
}

const without = (value: unknown, [key = "", ...rest]: ReadonlyArray<string>): unknown =>
  isTree(value)
    ? Object.fromEntries(
        Object.entries(value).flatMap(([name, one]) =>
          name !== key ? [[name, one]] : rest.length === 0 ? [] : [[name, without(one, rest)]]
        )
      )
    : value

/** A strategic merge: objects by their keys, lists of named objects by their names, everything else replaced. */
const merge = (value: unknown, change: unknown): unknown => {
  if (isTree(value) && isTree(change)) {
    const keys = new Set([...Object.keys(value), ...Object.keys(change)])
    return Object.fromEntries(
      [...keys].map((key) => [
        key,
        key in change ? (key in value ? merge(value[key], change[key]) : change[key]) : value[key]
      ])
    )
  }
  if (Array.isArray(value) && Array.isArray(change) && change.every((one) => at(one, "name") !== undefined)) {
    const changed = value.map((one) => {
      const found = change.find((other) => at(other, "name") === at(one, "name"))
      return found === undefined ? one : merge(one, found)
    })
    const added = change.filter((one) => !value.some((other) => at(other, "name") === at(one, "name")))
    return [...changed, ...added]
  }
  return change
}

const withImages = (value: unknown, images: ReadonlyArray<unknown>): unknown => {
  if (Array.isArray(value)) return value.map((one) => withImages(one, images))
  if (!isTree(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [
      key,
      key === "image" ? imageOf(text(one), images) : withImages(one, images)
    ])
  )
}

const imageOf = (image: string, images: ReadonlyArray<unknown>): string => {
  const [name = ""] = image.split(":")
  const found = images.find((one) => at(one, "name") === name)
  return found === undefined ? image : `${text(at(found, "newName")) || name}:${text(at(found, "newTag"))}`
}

const withNamespace = (object: Tree, namespace: unknown): Tree =>
  namespace === undefined || kindOf(object) === "Namespace"
    ? object
    : { ...object, metadata: { ...(isTree(object["metadata"]) ? object["metadata"] : {}), namespace } }
