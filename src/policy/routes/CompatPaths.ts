import { Result } from "effect"
import * as Path from "./Path.ts"
import * as RouteTable from "./RouteTable.ts"
import { useOf } from "./UpstreamObjects.ts"
import * as UpstreamPaths from "./UpstreamPaths.ts"

/** The default of `DIRECT_COMPAT_ALLOWED_PATHS`. */
export const defaultPaths: ReadonlyArray<string> = ["/v1/*"]

/** Returns false for a path that the upstream may read as a gateway route in another spelling. */
export const isOpen = (allowed: ReadonlyArray<string>, path: string): boolean => {
  if (!allowed.some((pattern) => Path.matches(pattern, path))) return false
  const segments = UpstreamPaths.foldedPath(path)
  if (segments === undefined || UpstreamPaths.isUi(segments) || UpstreamPaths.isAdminLike(segments)) return false
  const lenientRoute = RouteTable.canonicalRoute("POST", segments)
  return lenientRoute === undefined || lenientRoute === RouteTable.canonicalRoute("POST", path.slice(1).split("/"))
}

/** `later`: upstream work continues after the response without a usage report. `none`: the request uses no model. */
type CompatWork = "answer" | "later" | "none"

const laterNames: ReadonlySet<string> = new Set([
  ...["batch", "batches", "evals", "fine-tunes", "fine-tuning", "fine_tunes", "fine_tuning", "runs", "video", "videos"]
])

/** POST requests that use no model. `creates`: on the collection itself. `below`: on paths below an object. */
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

/** An unknown path counts as `answer`, because it may use a model. */
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
