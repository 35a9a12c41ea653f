import { Result } from "effect"
import * as Path from "./Path.ts"
import * as RouteTable from "./RouteTable.ts"
import { useOf } from "./UpstreamObjects.ts"
import * as UpstreamPaths from "./UpstreamPaths.ts"

/** Of the direct compatible upstream, until an operator names other paths (`DIRECT_COMPAT_ALLOWED_PATHS`). */
export const defaultPaths: ReadonlyArray<string> = ["/v1/*"]

/**
 * Whether a POST to `path` of the direct compatible upstream may go there, with the credential that the gateway keeps
 * for it. The upstream's UI and its administration are never open. A path that a lax upstream would take for one of the
 * canonical routes has to be written as that route.
 */
export const isOpen = (allowed: ReadonlyArray<string>, path: string): boolean => {
  if (!allowed.some((pattern) => Path.matches(pattern, path))) return false
  const segments = UpstreamPaths.foldedPath(path)
  if (segments === undefined || UpstreamPaths.isUi(segments) || UpstreamPaths.isAdminLike(segments)) return false
  const taken = RouteTable.canonicalRoute("POST", segments)
  return taken === undefined || taken === RouteTable.canonicalRoute("POST", path.slice(1).split("/"))
}

/**
 * What a POST to a path of the compatible upstream has it do: `answer`, which a model may give; `later`, work that goes on
 * after the answer, with models and tokens that no answer reports; `none`, nothing that has a model.
 */
export type CompatWork = "answer" | "later" | "none"

/** Segments of the paths that begin work, also by the names that other providers have for them. */
const laterNames: ReadonlySet<string> = new Set([
  ...["batch", "batches", "evals", "fine-tunes", "fine-tuning", "fine_tunes", "fine_tuning", "runs", "video", "videos"]
])

/** A POST that is known to have no model: to the collection of a kind (`creates`), and below an object of it. */
const postsWithoutModel: ReadonlyMap<string, { readonly creates: boolean; readonly below: RegExp }> = new Map([
  ["assistant", { creates: false, below: /^$/ }],
  ["batch", { creates: false, below: /^cancel$/ }],
  ["chat_completion", { creates: false, below: /^$/ }],
  ["container", { creates: true, below: /^files$/ }],
  ["conversation", { creates: true, below: /^items$/ }],
  ["eval", { creates: false, below: /^(?:runs\/[^/]+)?$/ }],
  ["file", { creates: true, below: /^$/ }],
  ["fine_tuning_job", { creates: false, below: /^(?:cancel|pause)$/ }],
  ["message_batch", { creates: false, below: /^cancel$/ }],
  ["response", { creates: false, below: /^cancel$/ }],
  ["skill", { creates: true, below: /^(?:versions)?$/ }],
  ["thread", { creates: true, below: /^(?:messages(?:\/[^/]+)?|runs\/[^/]+(?:\/cancel)?)?$/ }],
  ["upload", { creates: true, below: /^(?:parts|complete|cancel)$/ }],
  ["vector_store", { creates: true, below: /^(?:search|files(?:\/[^/]+)?|file_batches(?:\/[^/]+\/cancel)?)?$/ }]
])

/** Of a path that nobody knows, `answer`: a model may stand behind it. */
export const workOf = (target: string): CompatWork => {
  const path = Path.canonicalise(target)
  if (Result.isFailure(path)) return "answer"
  const { segments } = path.success
  const use = useOf("POST", segments)
  if (use._tag === "Use" && postsWithoutModel.get(use.kind)?.below.test(use.below) === true) return "none"
  if (RouteTable.canonicalRoute("POST", segments) !== undefined) return "answer"
  if (UpstreamPaths.foldedPath(path.success.path)?.some((name) => laterNames.has(name)) === true) return "later"
  return use._tag === "Create" && postsWithoutModel.get(use.kind)?.creates === true ? "none" : "answer"
}
