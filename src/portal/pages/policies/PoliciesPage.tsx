import { Button, Modal } from "@mantine/core"
import { Link } from "@tanstack/react-router"
import { useTextSearch } from "../../address/search.ts"
import { withQuery } from "../../api/http.ts"
import { useApi } from "../../api/queries.ts"
import { useAllowed } from "../../api/session.ts"
import { ErrorNote } from "../../shared/page/ErrorNote.tsx"
import { PageHeader } from "../../shared/page/PageHeader.tsx"
import { Tabs } from "../../shared/page/Tabs.tsx"
import { CopyAs } from "../../shared/words/CopyAs.tsx"
import { DeletedLayers, deletedPath, deletedRequest } from "./DeletedLayers.tsx"
import { EffectiveFor, effectivePath, effectiveRequest } from "./EffectiveFor.tsx"
import { LayerEditor } from "./editor/LayerEditor.tsx"
import { LayerMatrix, layersRequest } from "./LayerMatrix.tsx"
import { type LayerKind, layersPath } from "./words/layer.ts"

/** What holds for many keys at once: the layers above their own policies. */
const PoliciesPage = () => {
  const { change } = useTextSearch()
  const maySeeAudit = useAllowed("audit:read")
  return (
    <>
      <PageHeader
        title="Policies"
        lead="Layers restrict all keys, the keys of a project or team, or requests to a route or for a model. The strictest value holds."
        actions={
          <>
            <Command />
            <Button component={Link} to="/policies/simulate" variant="default">
              Try one out
            </Button>
            <Button onClick={() => change({ do: "create", kind: undefined, scope: undefined })}>Create a layer</Button>
          </>
        }
      />
      <Tabs
        tabs={[
          { value: "layers", label: "Layers", content: () => <LayerMatrix /> },
          { value: "effective", label: "Effective for…", content: () => <EffectiveFor /> },
          ...(maySeeAudit ? [{ value: "deleted", label: "Deleted", content: () => <DeletedLayers /> }] : [])
        ]}
      />
      <Editor />
    </>
  )
}

/** Copies the request of the open tab as a command. */
const Command = () => {
  const { text } = useTextSearch()
  const address =
    text("tab") === "effective"
      ? withQuery(effectivePath, effectiveRequest(text, text("route")).query)
      : text("tab") === "deleted"
        ? withQuery(deletedPath, deletedRequest.query)
        : withQuery(layersPath, layersRequest(text("kind")).query)
  return <CopyAs address={address} sections={["policy_layers"]} />
}

/** The editor that the address asks for: `do=create`, or `do=edit` with the kind and the scope. */
const Editor = () => {
  const { change, text } = useTextSearch()
  const doing = text("do")
  const kinds = useApi("/admin-ui/admin/policy/fields", {}, { enabled: doing !== undefined })
  const kind = kinds.data?.layer_kinds.find((one) => one === text("kind"))
  const close = () => change({ do: undefined, kind: undefined, scope: undefined })
  if (doing === "create") return <LayerEditor onClose={close} />
  if (doing !== "edit" || kind === undefined) return null
  return <FoundLayer kind={kind} scope={text("scope")} onClose={close} />
}

interface FoundProps {
  readonly kind: LayerKind
  readonly scope: string | undefined
  readonly onClose: () => void
}

/** Edits the layer of a scope, or makes it if there is none. */
const FoundLayer = ({ kind, onClose, scope }: FoundProps) => {
  const found = useApi(layersPath, { query: { kind, scope_id: scope, limit: 1 } })
  if (found.data === undefined && found.error !== null)
    return (
      <Modal opened onClose={onClose} title="Edit the layer">
        <ErrorNote error={found.error} onRetry={() => found.refetch()} />
      </Modal>
    )
  if (found.data === undefined || found.isPlaceholderData) return null
  const [layer] = found.data
  return layer === undefined ? (
    <LayerEditor kind={kind} scope={scope} onClose={onClose} />
  ) : (
    <LayerEditor layer={layer} onClose={onClose} />
  )
}

export default PoliciesPage
