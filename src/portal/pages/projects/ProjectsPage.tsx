import { Badge, Button } from "@mantine/core"
import { Link, useNavigate } from "@tanstack/react-router"
import { useRange } from "../../address/range.ts"
import { useTextSearch } from "../../address/search.ts"
import { addressOf } from "../../api/control.ts"
import { useLiveRefresh } from "../../api/live.ts"
import { useApi, useApiList, withRows } from "../../api/queries.ts"
import { useAllowed } from "../../api/session.ts"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { PathLink } from "../../shared/links/PathLink.tsx"
import { Empty } from "../../shared/page/Empty.tsx"
import { PageHeader } from "../../shared/page/PageHeader.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { type Column, DataTable } from "../../shared/table/DataTable.tsx"
import { EmptyList } from "../../shared/table/EmptyList.tsx"
import { FilterBar } from "../../shared/table/FilterBar.tsx"
import { Count, Money } from "../../shared/words/Amounts.tsx"
import { CopyAs, curlOf } from "../../shared/words/CopyAs.tsx"
import { percentText } from "../../shared/words/format.ts"
import { When } from "../../shared/words/When.tsx"
import { NewProject } from "./NewProject.tsx"
import { type Project, projectsPath } from "./project.ts"

type Sum = { readonly request_count: number; readonly failure_count: number; readonly estimated_cost_usd: number }
interface Row extends Project {
  /** `undefined` where it is not known. */
  readonly usage: Sum | undefined
}

const none: Sum = { request_count: 0, failure_count: 0, estimated_cost_usd: 0 }
const notKnown = "not known"

const filters = [
  { name: "q", label: "Name, owner or tag" },
  { name: "tag", label: "Tag" }
]
const liveTopics = ["configuration"] as const
const mostProjects = 500
const pageSize = 100

const columns: ReadonlyArray<Column<Row>> = [
  {
    id: "name",
    header: "Name",
    csv: ["id", "name"],
    cell: ({ id, name }) => (
      <Link to="/projects/$id" params={{ id }}>
        <ForeignText>{name}</ForeignText>
      </Link>
    )
  },
  {
    id: "owner",
    header: "Owner",
    csv: ["owner_email"],
    cell: ({ owner_email }) => (owner_email === null ? "–" : <ForeignText>{owner_email}</ForeignText>)
  },
  {
    id: "keys",
    header: "Keys",
    numeric: true,
    main: true,
    csv: ["key_count"],
    cell: ({ id, key_count }) => (
      <PathLink path={`/keys?project_id=${id}`}>
        <Count of={key_count} />
      </PathLink>
    )
  },
  {
    id: "requests",
    header: "Requests",
    numeric: true,
    csv: ({ usage }) => ({ request_count: usage?.request_count }),
    cell: ({ usage }) => (usage === undefined ? notKnown : <Count of={usage.request_count} short />)
  },
  {
    id: "failed",
    header: "Failed",
    numeric: true,
    main: true,
    csv: ({ usage }) => ({ failure_count: usage?.failure_count }),
    cell: ({ usage }) => (usage === undefined ? notKnown : percentText(usage.failure_count, usage.request_count))
  },
  {
    id: "cost",
    header: "Cost",
    numeric: true,
    main: true,
    csv: ({ usage }) => ({ estimated_cost_usd: usage?.estimated_cost_usd }),
    cell: ({ usage }) => (usage === undefined ? notKnown : <Money usd={usage.estimated_cost_usd} />)
  },
  {
    id: "services",
    header: "Services",
    csv: ["service_names"],
    cell: ({ service_names }) => (service_names.length === 0 ? "as policies say" : `${service_names.length} linked`)
  },
  {
    id: "tags",
    header: "Tags",
    csv: ["tags"],
    cell: ({ tags }) =>
      tags.map((tag) => (
        <Badge key={tag} variant="light" color="gray" tt="none" mr={4} radius="sm">
          <ForeignText>{tag}</ForeignText>
        </Badge>
      ))
  },
  { id: "id", header: "Id", hidden: true, cell: ({ id }) => <code>{id}</code> },
  {
    id: "created",
    header: "Created",
    hidden: true,
    csv: ["created_at"],
    cell: ({ created_at }) => <When at={created_at} />
  }
]

/** Groups of keys with common services, a common layer, and a common budget. */
const ProjectsPage = () => {
  const { change, text } = useTextSearch()
  const navigate = useNavigate()
  const { range } = useRange()
  const mayChange = useAllowed("settings:update")
  const mayOpen = useAllowed("operators:manage")
  const request = { query: { q: text("q"), tag: text("tag"), limit: pageSize } }
  const list = useApiList(projectsPath, request)
  const usage = useApi("/admin-ui/admin/usage/by-project", {
    query: { from: range.from.toISOString(), to: range.to.toISOString(), breakdown_limit: mostProjects }
  })
  useLiveRefresh(liveTopics, [projectsPath])
  const sums = new Map<string, Sum>(usage.data?.map(({ name, summary }) => [name, summary]))
  // a project that is missing among fewer than were asked for had no request
  const isWhole = usage.data !== undefined && usage.data.length < mostProjects
  const usageOf = (id: string) => sums.get(id) ?? (isWhole ? none : undefined)
  const shown = withRows(list, (projects) =>
    projects.map((project): Row => ({ ...project, usage: usageOf(project.id) }))
  )
  const create = mayChange && <Button onClick={() => change({ do: "create" })}>Create a project</Button>
  return (
    <>
      <PageHeader
        title="Projects"
        lead="Keys of one product or group share the services, the layer and the budget of their project."
        actions={
          <>
            <CopyAs address={addressOf("/admin-ui/admin/projects", request)} />
            {create}
          </>
        }
      />
      <Panel query={list.query} height={420} flush>
        {(instead) => (
          <DataTable
            instead={instead}
            name="projects"
            label="Projects"
            columns={columns}
            rows={shown.rows}
            rowId={({ id }) => id}
            {...(mayOpen && { onOpen: ({ id }: Row) => void navigate({ to: "/projects/$id", params: { id } }) })}
            list={shown}
            toolbar={
              <>
                <FilterBar filters={filters} />
                {usage.error !== null && <span>The usage cannot be read: {usage.error.message}</span>}
                {usage.data !== undefined && !isWhole && (
                  <span>The usage of the {mostProjects} busiest projects is shown.</span>
                )}
              </>
            }
            empty={
              <EmptyList filters={filters} unmatched="No project matches these filters.">
                <Empty
                  action={create}
                  command={mayChange && curlOf({ method: "POST", address: projectsPath, body: { name: "search" } })}
                >
                  There is no project yet. Keys can also do without one.
                </Empty>
              </EmptyList>
            }
          />
        )}
      </Panel>
      {text("do") === "create" && mayChange && (
        <NewProject
          onClose={() => change({ do: undefined })}
          onDone={(id) => void navigate(mayOpen ? { to: "/projects/$id", params: { id } } : { to: "/projects" })}
        />
      )}
    </>
  )
}

export default ProjectsPage
