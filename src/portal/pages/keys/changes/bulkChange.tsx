import type { ResponseOf } from "../../../api/Endpoints.ts"
import { countText } from "../../../shared/words/format.ts"
import type { Meaning } from "../../../shared/words/StatusWord.tsx"

export const changesPath = "/admin-ui/admin/bulk-key-changes"
export const changePath = "/admin-ui/admin/bulk-key-changes/:id"

export type BulkChange = ResponseOf<"GET", typeof changesPath>[number]

export const meaningOf = ({ keys, state }: BulkChange): Meaning =>
  state === "running" ? "working" : state === "stopped" ? "idle" : keys.failed > 0 ? "bad" : "good"

const list = (words: string, tags: ReadonlyArray<string>): ReadonlyArray<string> =>
  tags.length === 0 ? [] : [`${words} ${tags.join(", ")}`]

/** Returns a sentence about the change, such as `Tag 40 keys: add laptop`. */
export const sentenceOf = ({ action, add_tags, keys, remove_tags }: BulkChange): string => {
  const what = `${countText(keys.selected)} ${keys.selected === 1 ? "key" : "keys"}`
  switch (action) {
    case "disable":
      return `Disable ${what}`
    case "enable":
      return `Enable ${what}`
    case "tag":
      return `Tag ${what}: ${[...list("add", add_tags), ...list("remove", remove_tags)].join("; ")}`
    case "move":
      return `Move ${what} to a project`
    case "undo":
      return `Undo a change of ${what}`
  }
}
