import { notifications } from "@mantine/notifications"
import type { FieldError } from "../../../api/ApiError.ts"
import { useApiWrite } from "../../../api/queries.ts"
import { ChangeDialog } from "../../../shared/dialogs/ChangeDialog.tsx"
import { tellRefused } from "../../../shared/dialogs/GuardedChange.tsx"
import { ImpactNote } from "../../../shared/policy/Impact.tsx"
import { FieldDiff } from "../../../shared/words/FieldDiff.tsx"
import { type LayerUpsert, layerName, layersPath, prefixed, staleAfterLayers } from "../words/layer.ts"

interface Props {
  readonly layer: LayerUpsert
  readonly onClose: () => void
  readonly onDone: (id: string) => void
  /** The server refused values: the form shows why. */
  readonly onRefused?: (errors: ReadonlyArray<FieldError>) => void
}

/** Shows what a new layer restricts and whom it hits, and makes it. */
export const NewLayerReview = ({ layer, onClose, onDone, onRefused }: Props) => {
  const create = useApiWrite("POST", layersPath, staleAfterLayers)
  return (
    <ChangeDialog
      title="Create the layer"
      action="Create it"
      isBusy={create.isPending}
      error={create.error}
      onClose={onClose}
      onConfirm={() =>
        create.mutate(
          { body: layer },
          {
            onSuccess: (made) => {
              notifications.show({ message: `The layer of ${layerName(made)} is made.` })
              onDone(made.id)
            },
            onError: (error) => tellRefused(error, onRefused)
          }
        )
      }
    >
      <FieldDiff
        before={{}}
        after={{
          ...prefixed("policy", layer.policy),
          ...prefixed("shared", layer.shared),
          ...prefixed("guardrail_policy", layer.guardrail_policy)
        }}
      />
      <ImpactNote proposal={{ layer }} />
    </ChangeDialog>
  )
}
