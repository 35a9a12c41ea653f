import { PageHeader } from "../../shared/page/PageHeader.tsx"

const MyRequestsPage = () => <PageHeader title="Requests" />

export default MyRequestsPage
