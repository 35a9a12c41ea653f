import { useQueryClient } from "@tanstack/react-query"
import type { FieldError } from "../../api/ApiError.ts"
import { call } from "../../api/control.ts"
import type { BodyOf } from "../../api/Endpoints.ts"
import { useApiWrite } from "../../api/queries.ts"
import { GuardedChange, tellRefused } from "../../shared/dialogs/GuardedChange.tsx"
import { type Project, projectFields, projectPath, staleAfterProjects } from "./project.ts"

interface Props {
  readonly base: Project
  readonly changes: BodyOf<"PATCH", typeof projectPath>
  readonly onClose: () => void
  readonly onDone: () => void
  /** The server refused values: the form shows why. */
  readonly onRefused?: (errors: ReadonlyArray<FieldError>) => void
}

/** Shows the difference of a change of a project, and makes it unless somebody else was faster. */
export const ChangeProject = ({ base, changes, onClose, onDone, onRefused }: Props) => {
  const client = useQueryClient()
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
      onConfirm={({ updated_at }) =>
        update.mutate(
          { params, body: { ...changes, expected_updated_at: updated_at } },
          { onSuccess: onDone, onError: (error) => tellRefused(error, onRefused) }
        )
      }
      onClose={onClose}
    />
  )
}
