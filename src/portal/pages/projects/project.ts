import type { ResponseOf } from "../../api/Endpoints.ts"

export const projectsPath = "/admin-ui/admin/projects"
export const projectPath = "/admin-ui/admin/projects/:id"
/** What is old once a project has changed. */
export const staleAfterProjects = [
  projectsPath,
  projectPath,
  "/admin-ui/admin/keys",
  "/admin-ui/admin/keys/:id",
  "/admin-ui/admin/policy-layers",
  "/admin-ui/admin/audit-events"
]

export type Project = ResponseOf<"GET", typeof projectsPath>[number]

export const projectFields = (project: Project): Readonly<Record<string, unknown>> => ({
  name: project.name,
  description: project.description,
  owner_email: project.owner_email,
  tags: project.tags,
  service_names: project.service_names
})
