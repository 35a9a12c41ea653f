import { PageHeader } from "../../shared/page/PageHeader.tsx"

const ProjectsPage = () => <PageHeader title="Projects" />

export default ProjectsPage
