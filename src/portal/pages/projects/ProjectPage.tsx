import { Badge, Button, Menu } from "@mantine/core"
import { IconDots } from "@tabler/icons-react"
import { useNavigate, useParams } from "@tanstack/react-router"
import { useState } from "react"
import { addressOf } from "../../api/control.ts"
import { useLiveRefresh } from "../../api/live.ts"
import { useApi } from "../../api/queries.ts"
import { useAllowed } from "../../api/session.ts"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { LinkButton } from "../../shared/links/LinkButton.tsx"
import { Empty } from "../../shared/page/Empty.tsx"
import { PageHeader } from "../../shared/page/PageHeader.tsx"
import { Tabs } from "../../shared/page/Tabs.tsx"
import { UnreadPage } from "../../shared/page/UnreadPage.tsx"
import { ChangeList } from "../../shared/policy/ChangeList.tsx"
import { CopyAs } from "../../shared/words/CopyAs.tsx"
import { CopyButton } from "../../shared/words/CopyButton.tsx"
import { DeleteProject } from "./DeleteProject.tsx"
import { EditProject } from "./EditProject.tsx"
import { ProjectKeys } from "./ProjectKeys.tsx"
import { ProjectLayer } from "./ProjectLayer.tsx"
import { ProjectLimits } from "./ProjectLimits.tsx"
import { ProjectServices } from "./ProjectServices.tsx"
import { ProjectUsage } from "./ProjectUsage.tsx"
import { type Project, projectPath } from "./project.ts"

const liveTopics = ["configuration"] as const

/** One project: its keys, its usage, its services, and what its layer restricts. */
const ProjectPage = () => {
  const { id = "" } = useParams({ strict: false })
  const query = useApi(projectPath, { params: { id } })
  const maySeeUsage = useAllowed("usage:read")
  const maySeeAudit = useAllowed("audit:read")
  useLiveRefresh(liveTopics, [projectPath])
  const project = query.data
  if (project === undefined || project.id !== id)
    return (
      <UnreadPage
        title="Project"
        query={query}
        missing={
          <Empty action={<LinkButton path="/projects">All projects</LinkButton>}>
            No project has the id <ForeignText>{id}</ForeignText>.
          </Empty>
        }
      />
    )
  return (
    <>
      <PageHeader
        title={project.name}
        lead={project.description ?? project.owner_email}
        beside={
          <>
            {project.tags.map((tag) => (
              <Badge key={tag} variant="light" color="gray" tt="none" radius="sm">
                <ForeignText>{tag}</ForeignText>
              </Badge>
            ))}
            <CopyButton text={project.id} label="Copy the id" />
          </>
        }
        actions={
          <>
            <CopyAs
              address={addressOf(projectPath, { params: { id } })}
              configuration={{
                projects: [{ name: project.name }],
                service_links: [{ project: project.name, service_names: project.service_names }]
              }}
            />
            <Actions of={project} />
          </>
        }
      />
      <Tabs
        tabs={[
          { value: "keys", label: `Keys (${project.key_count})`, content: () => <ProjectKeys of={project} /> },
          ...(maySeeUsage
            ? [
                { value: "limits", label: "Budgets", content: () => <ProjectLimits of={project} /> },
                { value: "usage", label: "Usage", content: () => <ProjectUsage of={project} /> }
              ]
            : []),
          { value: "services", label: "Services", content: () => <ProjectServices of={project} /> },
          { value: "layers", label: "Policy", content: () => <ProjectLayer of={project} /> },
          ...(maySeeAudit
            ? [{ value: "changes", label: "Changes", content: () => <ChangeList target="project" id={project.id} /> }]
            : [])
        ]}
      />
    </>
  )
}

const Actions = ({ of: project }: { readonly of: Project }) => {
  const mayChange = useAllowed("settings:update")
  const navigate = useNavigate()
  const [dialog, setDialog] = useState<"edit" | "delete">()
  const close = () => setDialog(undefined)
  if (!mayChange) return null
  return (
    <>
      <Button variant="default" onClick={() => setDialog("edit")}>
        Edit
      </Button>
      <Menu position="bottom-end">
        <Menu.Target>
          <Button variant="default" px={6} aria-label="More actions">
            <IconDots size={16} />
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item color="red" onClick={() => setDialog("delete")}>
            Delete
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      {dialog === "edit" && <EditProject of={project} onClose={close} />}
      {dialog === "delete" && (
        <DeleteProject of={project} onClose={close} onDone={() => void navigate({ to: "/projects" })} />
      )}
    </>
  )
}

export default ProjectPage
