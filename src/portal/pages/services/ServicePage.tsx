import { useParams } from "@tanstack/react-router"
import { useTextSearch } from "../../address/search.ts"
import { useLiveRefresh } from "../../api/live.ts"
import { useApi } from "../../api/queries.ts"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { LinkButton } from "../../shared/links/LinkButton.tsx"
import { Empty } from "../../shared/page/Empty.tsx"
import { PageHeader } from "../../shared/page/PageHeader.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { Tabs } from "../../shared/page/Tabs.tsx"
import { UnreadPage } from "../../shared/page/UnreadPage.tsx"
import { CopyAs } from "../../shared/words/CopyAs.tsx"
import { EndpointPrices } from "./EndpointPrices.tsx"
import { OpenApi } from "./OpenApi.tsx"
import { Overview } from "./Overview.tsx"
import { ServiceActions } from "./ServiceActions.tsx"
import { ServiceForm } from "./ServiceForm.tsx"
import { ServiceUsage } from "./ServiceUsage.tsx"
import { configurationOf, path, StateWord } from "./service.tsx"

const liveTopics = ["configuration"] as const

const ServicePage = () => {
  const { name = "" } = useParams({ strict: false })
  const { change, text } = useTextSearch()
  const found = useApi(path, { params: { name } })
  const service = found.data
  const projectId = service?.project_id ?? null
  const project = useApi(
    "/admin-ui/admin/projects/:id",
    { params: { id: projectId ?? "" } },
    { enabled: projectId !== null }
  )
  const isProjectKnown = projectId === null || project.data !== undefined
  useLiveRefresh(liveTopics, [path])
  if (found.error !== null && service === undefined)
    return (
      <UnreadPage
        title="Service"
        query={found}
        missing={
          <Empty action={<LinkButton path="/services">All services</LinkButton>}>
            No service has the name <ForeignText>{name}</ForeignText>.
          </Empty>
        }
      />
    )
  return (
    <>
      <PageHeader
        title={name}
        beside={service !== undefined && <StateWord service={service} />}
        areActionsLate
        actions={
          <>
            <CopyAs
              address={`/admin-ui/admin/services/${encodeURIComponent(name)}`}
              configuration={
                service && isProjectKnown ? configurationOf(service, project.data?.name ?? null) : undefined
              }
            />
            {service !== undefined && <ServiceActions service={service} onEdit={() => change({ do: "edit" })} />}
          </>
        }
      />
      {service === undefined ? (
        <Panel query={found} height={300}>
          {null}
        </Panel>
      ) : (
        <>
          <Tabs
            tabs={[
              { value: "overview", label: "Overview", content: () => <Overview service={service} /> },
              { value: "openapi", label: "OpenAPI document", content: () => <OpenApi service={service} /> },
              { value: "prices", label: "Endpoints & prices", content: () => <EndpointPrices service={service} /> },
              { value: "usage", label: "Usage", content: () => <ServiceUsage name={name} /> }
            ]}
          />
          {text("do") === "edit" && (
            <ServiceForm
              service={service}
              onClose={() => change({ do: undefined })}
              onSaved={() => change({ do: undefined })}
            />
          )}
        </>
      )}
    </>
  )
}

export default ServicePage
