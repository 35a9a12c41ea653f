import { useQueryClient } from "@tanstack/react-query"
import type { FieldError } from "../../api/ApiError.ts"
import { call } from "../../api/control.ts"
import type { BodyOf } from "../../api/Endpoints.ts"
import { useApiWrite } from "../../api/queries.ts"
import { formerOf } from "../../shared/change/changed.ts"
import { useTell } from "../../shared/change/useTell.tsx"
import { GuardedChange, tellRefused } from "../../shared/dialogs/GuardedChange.tsx"
import { type Project, projectFields, projectPath, staleAfterProjects } from "./project.ts"

interface Props {
  readonly base: Project
  readonly changes: Omit<BodyOf<"PATCH", typeof projectPath>, "expected_updated_at">
  /** Said once it is changed. */
  readonly done: string
  readonly onClose: () => void
  readonly onDone: () => void
  /** The server refused values: the form shows why. */
  readonly onRefused?: (errors: ReadonlyArray<FieldError>) => void
}

/** Shows the difference of a change of a project, and makes it unless somebody else was faster. */
export const ChangeProject = ({ base, changes, done, onClose, onDone, onRefused }: Props) => {
  const client = useQueryClient()
  const tell = useTell()
  const update = useApiWrite("PATCH", projectPath, staleAfterProjects)
  const params = { id: base.id }
  const reread = () =>
    client.fetchQuery({
      staleTime: 0,
      queryKey: [projectPath, params, undefined],
      queryFn: () => call("GET", projectPath, { params })
    })
  return (
    <GuardedChange
      title={`Change ${base.name}`}
      action="Change it"
      base={base}
      reread={reread}
      fieldsOf={projectFields}
      changes={{ ...changes }}
      isBusy={update.isPending}
      error={update.error}
      onConfirm={(version) =>
        update.mutate(
          { params, body: { ...changes, expected_updated_at: version.updated_at } },
          {
            onSuccess: (after) => {
              tell({
                done,
                audit: { type: "project", id: base.id },
                undo: () =>
                  call("PATCH", projectPath, {
                    params,
                    body: { ...formerOf(version, changes), expected_updated_at: after.updated_at }
                  })
              })
              onDone()
            },
            onError: (error) => tellRefused(error, onRefused)
          }
        )
      }
      onClose={onClose}
    />
  )
}
