import { useApi } from "../api/queries.ts"
import { allows } from "../api/session.ts"

/** Shorter words are in too many names. */
const leastWord = 2
const mostOfKind = 5

/** Something that has a name. `to`: its page, below `/admin-ui`. */
export interface Named {
  readonly kind: "key" | "project" | "model"
  readonly id: string
  readonly label: string
  readonly to: string
}

/** Finds keys, projects and models by what they are called: one call per kind, where the token may read it. */
export const useNamed = (word: string, scopes: ReadonlyArray<string>): ReadonlyArray<Named> => {
  const isLongEnough = word.length >= leastWord
  const maySeeUsage = isLongEnough && allows(scopes, ["usage:read"])
  const query = { q: word, limit: mostOfKind }
  const keys = useApi(
    "/admin-ui/admin/keys",
    { query },
    { enabled: isLongEnough && allows(scopes, ["operators:manage"]) }
  )
  const projects = useApi("/admin-ui/admin/projects", { query }, { enabled: maySeeUsage })
  // the models that were used are few, and are read once for all words
  const models = useApi("/admin-ui/admin/models", { query: { limit: 500 } }, { enabled: maySeeUsage })
  const lower = word.toLowerCase()
  if (!isLongEnough) return []
  return [
    ...(keys.data ?? []).map(
      ({ id, key_prefix, name }): Named => ({
        kind: "key",
        id,
        label: name === null ? key_prefix : `${name} (${key_prefix})`,
        to: `/keys/${id}`
      })
    ),
    ...(projects.data ?? []).map(
      ({ id, name }): Named => ({ kind: "project", id, label: name, to: `/projects/${id}` })
    ),
    ...(models.data?.models ?? [])
      .filter(({ model }) => model.toLowerCase().includes(lower))
      .slice(0, mostOfKind)
      .map(
        ({ model }): Named => ({
          kind: "model",
          id: model,
          label: model,
          to: `/models?q=${encodeURIComponent(model)}`
        })
      )
  ]
}
